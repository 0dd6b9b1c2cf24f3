#!/usr/bin/env python3
"""Compares hearth's chat templates with Jinja2, byte for byte, under transformers' settings.

    template_parity.py DRIVER        environment: HEARTH_TEST_MODEL

1. Every snippet of template_snippets.py: the same text, or a failure on both sides.
2. Random expressions, statements and tag soup of template_random.py (30,000 of each with HEARTH_VERIFY=1).
3. The model's own template on several hundred generated conversations; the segments must join to the same text, and no
   byte of a user's text may be marked as the template's.
Other models' templates: template_real.py.
"""
import copy
import datetime
import json
import os
import random
import signal
import struct
import subprocess
import sys
import warnings

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

import template_random
import template_snippets

NOW = datetime.datetime(2026, 12, 1, 12, 34, 56)
warnings.simplefilter("ignore")


class Generation(Extension):
    """{% generation %}: the text of the block, in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(lineno)

    def _support(self, caller):
        return caller()


def environment(sandbox=ImmutableSandboxedEnvironment):
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    class TemplateDict:
        def __call__(self, *args, **kwargs):
            return dict(*args, **kwargs)

    class TemplateNamespace(jinja2.utils.Namespace):
        def __init__(*args, **kwargs):
            attrs = dict(*args[1:], **kwargs)
            for name in attrs:
                TemplateNamespace._check_name(name)
            jinja2.utils.Namespace.__init__(args[0], attrs)

        def __setitem__(self, name, value):
            TemplateNamespace._check_name(name)
            jinja2.utils.Namespace.__setitem__(self, name, value)

        @staticmethod
        def _check_name(name):
            if isinstance(name, str) and name.startswith("_"):
                raise jinja2.exceptions.SecurityError(name)

    env = sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda fmt: NOW.strftime(fmt)
    env.globals["dict"] = TemplateDict()
    env.globals["namespace"] = TemplateNamespace
    return env


class Driver:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _ask(self, request):
        self.process.stdin.write(request)
        self.process.stdin.flush()
        ok, length = struct.unpack("<BI", self._read(5))
        return bool(ok), self._read(length).decode()

    def _read(self, n):
        data = self.process.stdout.read(n)
        if len(data) != n:
            raise SystemExit("the driver died")
        return data

    def parse(self, source):
        data = source.encode()
        return self._ask(b"T" + struct.pack("<I", len(data)) + data)

    def render(self, variables, trusted):
        """(ok, text or message, [(piece, from_template)])"""
        names = b"".join(pack_string(n) for n in trusted)
        ok, text = self._ask(b"R" + pack(variables) + struct.pack("<I", len(trusted)) + names)
        segments = []
        if ok:
            (count,) = struct.unpack("<I", self._read(4))
            rest = text.encode()
            for _ in range(count):
                length, from_template = struct.unpack("<IB", self._read(5))
                segments.append((rest[:length], bool(from_template)))
                rest = rest[length:]
            assert not rest
        return ok, text, segments


def pack_string(s):
    data = s.encode()
    return struct.pack("<I", len(data)) + data


def pack(value):
    if value is None:
        return b"n"
    if value is True or value is False:
        return b"t" if value else b"f"
    if isinstance(value, int):
        return b"i" + struct.pack("<q", value)
    if isinstance(value, float):
        return b"d" + struct.pack("<d", value)
    if isinstance(value, str):
        return b"s" + pack_string(value)
    if isinstance(value, list):
        return b"l" + struct.pack("<I", len(value)) + b"".join(map(pack, value))
    return b"o" + struct.pack("<I", len(value)) + b"".join(pack_string(k) + pack(v) for k, v in value.items())


def reference(env, source, variables):
    """The text, or None and why there is none."""
    try:
        # Jinja2's indent changes a list that it is given: each rendering has variables of its own.
        text = env.from_string(source).render(**copy.deepcopy(variables))
        text.encode()
        return text, ""
    except Exception as error:  # noqa: BLE001: whatever Jinja2 raises is a failure
        return None, f"{type(error).__name__}: {error}"


WORDS = "Hello what is the capital of France? 👍 中文 naïve \n\n  indented\n\ttab {{ x }} {% if %} <|im_end|> <|im_start|>system </think> [INST] 'q' \"dq\" \\n é".split(" ")


def make_text(rng):
    return rng.choice(["", " ", "\n"]) + " ".join(rng.choices(WORDS, k=rng.randint(0, 20))) + rng.choice(["", "  \n"])


def conversation(rng):
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": make_text(rng)})
    for _ in range(rng.randint(1, 5)):
        messages.append({"role": "user", "content": make_text(rng)})
        answer = {"role": "assistant", "content": make_text(rng)}
        if rng.random() < 0.2:
            answer["content"] = "<think>\n" + make_text(rng) + "</think>\n" + answer["content"]
        if rng.random() < 0.2:
            answer["reasoning_content"] = make_text(rng)
        messages.append(answer)
    if rng.random() < 0.8:
        messages.append({"role": "user", "content": make_text(rng)})
    variables = {"messages": messages, "add_generation_prompt": rng.random() < 0.7, "bos_token": "<s>", "eos_token": "</s>"}
    if rng.random() < 0.3:
        variables["enable_thinking"] = rng.random() < 0.5
    return variables


def compare(driver, env, source, variables, report):
    """True when both sides agree. `report` is called with what differs."""
    want, why = reference(env, source, variables)
    ok, got = driver.parse(source)
    if ok:
        ok, got, _ = driver.render(variables, ["bos_token", "eos_token"])
    if ok == (want is not None) and (not ok or got == want):
        return True
    report(f"template  {source!r}\n  Jinja2    {want!r} {why}\n  hearth    {'text' if ok else 'failure'} {got!r}")
    return False


def check_snippets(driver):
    failures = []
    lines = [line for line in template_snippets.SNIPPETS.strip("\n").split("\n") if line]
    blocks = [block for block in template_snippets.BLOCKS[1:].split("%%%%\n")]
    mutating = [line for line in template_snippets.MUTATING.strip("\n").split("\n") if line]
    fine = 0
    for env, sources in ((environment(), lines + blocks), (environment(SandboxedEnvironment), mutating)):
        for source in sources:
            compare(driver, env, source, template_snippets.VARS, failures.append)
            fine += reference(env, source, template_snippets.VARS)[0] is not None
    for failure in failures:
        print(failure, file=sys.stderr)
    count = len(lines) + len(blocks) + len(mutating)
    print(f"{count} snippets ({fine} that render, {count - fine} that fail on both sides), {len(failures)} differ", file=sys.stderr)
    return not failures and count >= 300 and fine > count // 2


class TooSlow(Exception):
    pass


def check_random(driver):
    def give_up(*_):
        raise TooSlow

    signal.signal(signal.SIGALRM, give_up)  # 7 ** 7 ** 7 ...
    count = 30_000 if os.environ.get("HEARTH_VERIFY") else 2_000
    env, rng, failures, compared, rendered = environment(), random.Random(3), [], 0, 0
    for make in (template_random.statement, template_random.soup):
        for _ in range(count):
            source = make(rng)
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            try:
                want, why = reference(env, source, template_snippets.VARS)
            except TooSlow:
                continue
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if "TooSlow" in why or "MemoryError" in why:
                continue
            ok, got = driver.parse(source)
            if ok:
                ok, got, _ = driver.render(template_snippets.VARS, [])
            if template_random.expected_difference(source, want or why, got):
                continue
            compared += 1
            rendered += want is not None
            if ok != (want is not None) or (ok and got != want):
                failures.append(f"template  {source!r}\n  Jinja2    {want!r} {why}\n  hearth    {ok} {got!r}")
    for failure in failures[:10]:
        print(failure, file=sys.stderr)
    print(f"{compared} random templates ({rendered} render), {len(failures)} differ", file=sys.stderr)
    return not failures and compared > count and rendered > compared // 3


def check_model(driver):
    import gguf

    source = gguf.GGUFReader(os.environ["HEARTH_TEST_MODEL"]).fields["tokenizer.chat_template"].contents()
    env, rng, failures = environment(), random.Random(1), []
    for _ in range(400):
        variables = conversation(rng)
        compare(driver, env, source, variables, failures.append)
        driver.parse(source)
        ok, _, segments = driver.render(variables, ["bos_token", "eos_token"])
        # What the template wrote is its own literals and roles... roles come from the caller, so they are user text too.
        own = b"".join(piece for piece, from_template in segments if from_template)
        users = b"".join(piece for piece, from_template in segments if not from_template)
        said = "".join(m["role"] + m["content"] for m in variables["messages"]).encode()
        if not ok or users != said or b"{{ x }}" in own:
            failures.append(f"segments of {variables!r}: {segments!r}")
    for failure in failures[:5]:
        print(failure, file=sys.stderr)
    print(f"the model's template: 400 conversations, {len(failures)} failures", file=sys.stderr)
    return not failures


def main():
    driver = Driver(sys.argv[1])
    ok = check_snippets(driver)
    ok = check_random(driver) and ok
    if os.environ.get("HEARTH_TEST_MODEL"):
        ok = check_model(driver) and ok
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
