#!/usr/bin/env python3
"""Start, states, keys, drain and end of the built program."""
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import server_fixture as fixture

STORY = {"messages": [{"role": "user", "content": "Tell a story."}], "temperature": 1, "seed": 1, "ignore_eos": True}


class Start(unittest.TestCase):
    def run_serve(self, *arguments, model=None):
        """Runs to the end; (exit code, stderr, seconds)."""
        begin = time.monotonic()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HEARTH_")}
        result = subprocess.run([fixture.BIN, "serve", model or fixture.MODEL, "--port", "0", *arguments], capture_output=True, text=True, timeout=60, env=environment)
        return result.returncode, result.stderr, time.monotonic() - begin

    def test_health_answers_before_the_model_is_there(self):
        with fixture.Server(wait=False) as server:
            server.wait_bound()
            seen, refused = set(), set()
            while not seen or 200 not in seen:
                status, head, body = server.get("/health")
                seen.add(status)
                if status == 503:
                    self.assertIn("Loading model", json.loads(body)["error"]["message"])
                    self.assertIn("retry-after", head)
                    refused.add(server.post("/v1/chat/completions", STORY | {"max_tokens": 1})[0])
            self.assertIn(503, seen)
            self.assertIn(503, refused)  # the last one may have come when the model was there
            self.assertEqual(server.get("/ready")[0], 200)

    def test_second_start_is_quick(self):
        begin = time.monotonic()
        with fixture.Server():
            self.assertLess(time.monotonic() - begin, 20)  # 2 s on an idle machine

    def test_kv_memory_is_held_from_the_start(self):
        """Ready means that the whole KV budget is resident: nobody can take it from a running answer."""
        resident = []
        for mib in (256, 768):
            with fixture.Server("--kv-budget", f"{mib}M") as server:
                with open(f"/proc/{server.process.pid}/status") as file:
                    kib = next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))
                self.assertGreaterEqual(kib, mib * 1024)
                resident.append(kib)
        self.assertAlmostEqual(resident[1] - resident[0], 512 * 1024, delta=32 * 1024)

    def test_bad_model_files(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(fixture.MODEL, "rb") as file:
                cut = file.read(100_000)
            cases = {"missing": None, "empty": b"", "text": b"hello\n" * 100, "cut": cut}
            for name, content in cases.items():
                path = os.path.join(folder, name + ".gguf")
                if content is not None:
                    with open(path, "wb") as file:
                        file.write(content)
                code, err, _ = self.run_serve(model=path)
                self.assertEqual(code, 2, name)
                self.assertEqual(len(err.strip().splitlines()), 1, err)
            self.assertEqual(self.run_serve(model=folder)[0], 2)

    def test_memory_that_cannot_be_had(self):
        code, err, _ = self.run_serve("--kv-budget", "1M")
        self.assertEqual(code, 2)
        self.assertRegex(err, r"one context of 8192 tokens takes .*188743680 bytes.*budget is .*1048576 bytes")
        code, err, _ = self.run_serve("--kv-budget", "100G")
        self.assertEqual(code, 2)
        code, err, _ = self.run_serve("--context", "100000")
        self.assertEqual(code, 2)
        self.assertIn("8192", err)

    @unittest.skipIf(os.environ.get("HEARTH_BUILD_KIND") == "sanitizer", "a sanitizer's program needs the whole address space")
    def test_threads_that_cannot_be_had(self):
        """A gigabyte of address space holds no 256 stacks: a line and a code, no core dump."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        for verb in ("serve", "run"):
            result = subprocess.run([fixture.BIN, verb, fixture.MODEL, *(["hi"] if verb == "run" else []), "--threads", "256", "--kv-budget", "200M"], capture_output=True, text=True,
                                    stdin=subprocess.DEVNULL, timeout=60, preexec_fn=limit)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(result.stderr.strip().splitlines()[-1][:45], "hearth: cannot start 256 compute threads: Res")

    def test_cannot_bind(self):
        with fixture.Server() as server:
            code, err, seconds = self.run_serve("--port", str(server.port))
            self.assertEqual(code, 1)
            self.assertIn(str(server.port), err)
        code, err, _ = self.run_serve("--host", "0.0.0.0")
        self.assertEqual(code, 1)
        self.assertIn("--api-key-file", err)
        self.assertEqual(self.run_serve("--host", "nonsense")[0], 2)  # a bad value, not a failed bind
        self.assertEqual(self.run_serve("--api-key-file", "/nonexistent")[0], 1)

    def test_a_small_context_is_enforced_and_shown(self):
        with fixture.Server("--context", "256", "--default-max-tokens", "50", "--alias", "short") as server:
            model = json.loads(server.get("/v1/models")[2])["data"][0]
            self.assertEqual((model["id"], model["max_model_len"], model["default_max_tokens"]), ("short", 256, 50))
            answer = server.chat(**STORY)
            self.assertEqual((answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]), (50, "length"))
            status, _, answer = server.post("/v1/chat/completions", STORY | {"max_tokens": 250})
            self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))

    def test_keys(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# keys\nann:0123456789abcdef-ann\n0123456789abcdef-bob\n")
            file.flush()
            with fixture.Server("--api-key-file", file.name, wait=False) as server:
                server.wait_bound()
                server.wait_ready()  # health and readiness need no key
                for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Bearer 0123456789abcdef-ann"}, 200),
                                        ({"x-api-key": "0123456789abcdef-bob"}, 200), ({"Authorization": "Bearer 0123456789abcdef-an"}, 401)):
                    got, head, answer = server.post("/v1/chat/completions", {"messages": fixture.PARIS, "max_tokens": 1}, headers)
                    self.assertEqual(got, status, headers)
                    if status == 401:
                        self.assertIn("www-authenticate", head)
                        self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
                self.assertEqual(server.get("/v1/models")[0], 401)
                # A prefix is shared inside one key only.
                long = {"messages": [{"role": "user", "content": "The same long words again and again. " * 40}], "max_tokens": 1}
                cached = [server.post("/v1/chat/completions", long, {"Authorization": "Bearer 0123456789abcdef-" + who})[2]["usage"]["prompt_tokens_details"]["cached_tokens"]
                          for who in ("ann", "ann", "bob", "bob")]
                self.assertEqual(cached[0], 0)
                self.assertGreater(cached[1], 100)
                self.assertEqual(cached[2], 0)
                self.assertGreater(cached[3], 100)
                self.assertNotIn("0123456789abcdef", server.output())


class End(unittest.TestCase):
    def test_sigterm_lets_answers_finish(self):
        with fixture.Server("--drain", "60") as server:
            fields = STORY | {"max_tokens": 150}
            begun = threading.Barrier(5)
            results = []

            def one():
                tokens, reason = 0, None
                stream = server.stream("/v1/chat/completions", fields | {"stream_options": {"include_usage": True}})
                next(stream)
                begun.wait()
                for event in stream:
                    for choice in event["choices"]:
                        reason = choice["finish_reason"] or reason
                    if event["usage"]:
                        tokens = event["usage"]["completion_tokens"]
                results.append((tokens, reason))

            threads = [threading.Thread(target=one) for _ in range(4)]
            for thread in threads:
                thread.start()
            idle = server.connect()
            idle.request("GET", "/ready")
            self.assertEqual(idle.getresponse().read(), b'{"status":"ready"}')
            begun.wait()
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            if server.process.poll() is None:
                # A connection that was open sees the end coming; a new one is not taken.
                idle.request("GET", "/ready")
                response = idle.getresponse()
                self.assertEqual(response.status, 503)
                response.read()
                with self.assertRaises(OSError):
                    server.get("/health")
            for thread in threads:
                thread.join()
            idle.close()
            self.assertEqual(results, [(150, "length")] * 4)
            self.assertEqual(server.process.wait(20), 0)

    def test_without_standard_descriptors(self):
        """As a bare supervisor may start it: nothing lands on 0, 1 and 2, and the end is a 0 all the same."""
        with tempfile.TemporaryDirectory() as folder:
            port_file = os.path.join(folder, "port")
            pid = os.fork()
            if pid == 0:
                os.closerange(0, 3)
                os.execve(fixture.BIN, [fixture.BIN, "serve", fixture.MODEL, "--port", "0", "--port-file", port_file], {})
            try:
                end = time.monotonic() + 60
                while not os.path.exists(port_file):
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.02)
                with open(port_file) as file:
                    port = int(file.read())
                status = 0
                while status != 200:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                    connection.request("GET", "/ready")
                    status = connection.getresponse().status
                    connection.close()
                    self.assertLess(time.monotonic(), end)
                self.assertEqual([os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)], ["/dev/null"] * 3)
            finally:
                os.kill(pid, signal.SIGTERM)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_an_end_behind_a_client_that_left(self):
        """Its handler ends while the server is taken down, and still asks it for its counts (Debian 13's library aborted)."""
        for wait_s in (0.05, 0.3):
            with fixture.Server() as server:
                body = json.dumps({"prompt": [5] * 8000, "max_tokens": 1}).encode()
                for _ in range(3):
                    with socket.create_connection(("127.0.0.1", server.port)) as s:
                        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                        time.sleep(wait_s)
                self.assertEqual(server.stop(), 0)

    def test_drain_has_an_end(self):
        with fixture.Server("--drain", "1") as server:
            stream = server.stream("/v1/chat/completions", STORY | {"max_tokens": 8000})
            next(stream)
            begin = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            events = []
            with self.assertRaises(AssertionError):  # cut: no [DONE]
                for event in stream:
                    events.append(event)
            self.assertEqual(events[-1]["error"]["message"], "the server is shutting down")
            self.assertEqual(server.process.wait(10), 0)
            self.assertLess(time.monotonic() - begin, 8)

    def test_second_signal_ends_at_once(self):
        server = fixture.Server("--drain", "600")
        stream = server.stream("/v1/chat/completions", STORY | {"max_tokens": 8000})
        next(stream)
        server.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(server.process.poll())
        begin = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        self.assertEqual(server.process.wait(5), 128 + signal.SIGINT)
        self.assertLess(time.monotonic() - begin, 2)
        stream.close()
        server.log.close()
        server.folder.cleanup()

    def test_idle_end_and_restart(self):
        for _ in range(3):
            with fixture.Server() as server:
                self.assertEqual(server.get("/health")[0], 200)
                keep = server.connect()
                keep.request("GET", "/health")
                keep.getresponse().read()
                begin = time.monotonic()
                self.assertEqual(server.stop(), 0)
                self.assertLess(time.monotonic() - begin, 5)
                keep.close()


class Systemd(unittest.TestCase):
    def test_notifications(self):
        """READY=1 when a token can be served, WATCHDOG=1 while the engine is fine, STOPPING=1 at the end."""
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            path = os.path.join(folder, "notify")
            listener.bind(path)
            listener.settimeout(20)
            with fixture.Server(env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"}, wait=False) as server:
                seen = []

                def until(word):
                    while not seen or word not in seen[-1]:
                        seen.append(listener.recv(4096).decode())

                until("READY=1")
                server.wait_bound()
                self.assertEqual(server.get("/ready")[0], 200)
                self.assertIn("STATUS=serving", seen[-1])
                until("WATCHDOG=1")
                server.process.send_signal(signal.SIGTERM)
                until("STOPPING=1")
                self.assertEqual(server.process.wait(20), 0)


if __name__ == "__main__":
    fixture.main()
