#!/usr/bin/env python3
"""The built program from outside: how it is linked, exit codes, help, the man page, the terminal chat on a pseudo-terminal.

Environment: HEARTH_BIN, HEARTH_TEST_MODEL.
"""
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unittest

BIN = os.environ.get("HEARTH_BIN")
MODEL = os.environ.get("HEARTH_TEST_MODEL")
QUESTION = ["--system", "You are a helpful assistant.", "--temperature", "0", "What is the capital of France?"]


def run(*arguments, stdin="", env=None, timeout=120):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEARTH_")} | (env or {})
    return subprocess.run([BIN, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout, env=environment)


@unittest.skipIf(os.environ.get("HEARTH_BUILD_KIND") == "sanitizer", "a sanitizer's program is neither static nor has mimalloc")
class Linking(unittest.TestCase):
    def test_fully_static(self):
        """No interpreter and no needed library: what readelf says of the program's own headers."""
        out = subprocess.run(["readelf", "-lWd", BIN], capture_output=True, text=True, check=True).stdout
        self.assertFalse("INTERP" in out, "the program asks for an interpreter")
        self.assertFalse("(NEEDED)" in out, "the program needs a shared library")

    def test_mimalloc_is_the_allocator(self):
        symbols = subprocess.run(["nm", BIN], capture_output=True, text=True).stdout
        self.assertTrue(" mi_malloc" in symbols, "mimalloc is not linked in")
        self.assertFalse(" _int_malloc" in symbols, "glibc's allocator is linked in as well")


class Usage(unittest.TestCase):
    def test_version(self):
        result = run("version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^hearth \d+\.\d+\.\d+ ")
        self.assertEqual(json.loads(run("version", "--json").stdout)["name"], "hearth")

    def test_no_arguments_shows_help_and_exits_2(self):
        result = run()
        self.assertEqual(result.returncode, 2)
        self.assertIn("hearth serve", result.stderr)

    def test_wrong_option_is_one_line_and_2(self):
        for arguments in (["serve"], ["serve", "x", "--port", "99999"], ["nothing"], ["run", "x", "--nope"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stderr.count("\n"), 1, arguments)

    def test_unwritable_output_is_an_error(self):
        for arguments in (["help"], ["version"], ["inspect", MODEL]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([BIN, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), arguments)

    def test_missing_or_bad_model_is_one_line_and_2(self):
        for path in ("/nonexistent.gguf", "/", "/dev/zero", "/dev/null", __file__):
            for command in ("inspect", "run", "serve"):
                extra = ["hello"] if command == "run" else ["--port", "0"] if command == "serve" else []
                start = time.monotonic()
                result = run(command, path, *extra)
                self.assertEqual(result.returncode, 2, (command, path, result.stderr))
                self.assertEqual(result.stderr.count("\n"), 1, (command, path, result.stderr))
                self.assertLess(time.monotonic() - start, 10)

    def test_help_of_each_command(self):
        for command in ("serve", "run", "inspect", "version", "help"):
            self.assertIn(f"usage: hearth {command}", run(command, "--help").stdout)

    def test_man_page_is_valid_roff(self):
        page = run("help", "--format", "man").stdout
        self.assertTrue(page.startswith(".TH HEARTH 1"))
        result = subprocess.run(["man", "--warnings", "-l", "-"], input=page, capture_output=True, text=True, env=os.environ | {"MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "")


class OneShot(unittest.TestCase):
    def test_answer_on_stdout_alone(self):
        result = run("run", MODEL, *QUESTION)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Paris", result.stdout)
        self.assertNotIn("\x1b", result.stdout + result.stderr, "no escape codes without a terminal")

    def test_piped_prompt(self):
        result = run("run", MODEL, *QUESTION[:-1], stdin=QUESTION[-1] + "\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Paris", result.stdout)

    def test_prompt_and_pipe_together(self):
        result = run("run", MODEL, *QUESTION[:-1], "Answer the question.", stdin=QUESTION[-1])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.strip())

    def test_json(self):
        answer = json.loads(run("run", MODEL, "--json", "--max-tokens", "3", *QUESTION).stdout)
        self.assertEqual(answer["finish_reason"], "length")
        self.assertEqual(answer["completion_tokens"], 3)
        self.assertGreater(answer["prompt_tokens"], 10)

    def test_seed_repeats(self):
        texts = {run("run", MODEL, "--seed", "7", "--max-tokens", "20", "--temperature", "1.2", "Tell me a story.").stdout for _ in range(2)}
        self.assertEqual(len(texts), 1)

    def test_environment(self):
        result = run("run", MODEL, "Hello", env={"HEARTH_MAX_TOKENS": "2", "HEARTH_JSON": "1"})
        self.assertEqual(json.loads(result.stdout)["completion_tokens"], 2)

    def test_empty_pipe_is_an_error(self):
        result = run("run", MODEL, stdin="")
        self.assertEqual(result.returncode, 2)

    def test_prompt_longer_than_the_context(self):
        result = run("run", MODEL, "--context", "64", "word " * 200)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"\d+ tokens.*64")

    def test_interrupt_exits_130(self):
        process = subprocess.Popen([BIN, "run", MODEL, "--max-tokens", "2000", "--temperature", "1", "Tell me a very long story."],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, *arguments, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.environ.update(env or {})
            os.execv(BIN, [BIN, *arguments])
        self.seen = ""

    def wait_for(self, pattern, timeout=60):
        end = time.monotonic() + timeout
        while not (match := re.search(pattern, self.seen)):
            if time.monotonic() > end:
                raise AssertionError(f"never saw {pattern!r} in {self.seen!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"the program ended before {pattern!r}: {self.seen!r}")
        self.seen = self.seen[match.end():]

    def send(self, text):
        os.write(self.fd, text.encode())

    def exit_code(self):
        """Waits for the process itself: the end of its terminal is no sign of it, since what is typed after the end is still
        echoed by the terminal and some kernels report no error on the other side."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    time.sleep(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"the program did not end: {self.seen!r}")


class Chat(unittest.TestCase):
    def test_conversation(self):
        """A turn, a follow-up that remembers it, Ctrl-C stops only the answer, Ctrl-D leaves with 0."""
        chat = Terminal("run", MODEL, "--system", "You are a helpful assistant.", "--temperature", "0")
        chat.wait_for(r">>> ")
        chat.send("What is the capital of France?\n")
        chat.wait_for(r"Paris")
        chat.wait_for(r"token/s|tokens/s")
        chat.wait_for(r">>> ")
        chat.send("Write the numbers from 1 to 500, one a line.\n")
        chat.wait_for(r"1")
        time.sleep(0.3)
        chat.send("\x03")
        chat.wait_for(r"stopped")
        chat.wait_for(r">>> ")
        chat.send("/help\n")
        chat.wait_for(r"/clear")
        chat.wait_for(r">>> ")
        chat.send("/nonsense\n")
        chat.wait_for(r"/help")
        chat.wait_for(r">>> ")
        chat.send("\x04")
        self.assertEqual(chat.exit_code(), 0)

    def test_history_and_multiline(self):
        chat = Terminal("run", MODEL, "--max-tokens", "4", "--temperature", "0")
        chat.wait_for(r">>> ")
        chat.send("first question\n")
        chat.wait_for(r">>> ")
        chat.send("\x1b[A")  # arrow up
        chat.wait_for(r"first question")
        chat.send("\x15")    # kill the line
        chat.send('"""\n')
        chat.wait_for(r"\.\.\. ")
        chat.send("a\n")
        chat.wait_for(r"\.\.\. ")
        chat.send('b"""\n')
        chat.wait_for(r"tokens/s|token/s|tokens")
        chat.wait_for(r">>> ")
        chat.send("/bye\n")
        self.assertEqual(chat.exit_code(), 0)

    def test_no_color(self):
        plain = Terminal("run", MODEL, "--max-tokens", "3", "hello", env={"NO_COLOR": "1"})
        plain.exit_code()
        self.assertNotRegex(plain.seen, r"\x1b\[[0-9;]*m")
        coloured = Terminal("run", MODEL, "--max-tokens", "3", "hello")
        coloured.exit_code()
        self.assertIn("\x1b[2m", coloured.seen)


if __name__ == "__main__":
    if not (BIN and MODEL):
        print("HEARTH_BIN or HEARTH_TEST_MODEL is not set")
        sys.exit(77)
    unittest.main()
