#!/usr/bin/env python3
"""Compares hearth's token ids with those of the reference encoder of a real vocabulary: 0 mismatches allowed.

    tokenizer_parity.py DRIVER NAME     environment: HEARTH_TEST_MODEL, HEARTH_TEST_VOCABULARIES, HEARTH_VERIFY=1 for 10^6 strings

Bytes that are no UTF-8 reach the reference as bytes.decode('utf-8', 'replace'). Code points that the two sides class
differently (their Unicode versions differ) are found by asking both about every code point, excluded and counted.
"""
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import tokenizer_references
from tokenizer_strings import make_string

SEED = 20261201
BATCH = 100_000


def make_cases(rng, count, reference):
    cases = []
    while len(cases) < count:
        raw = make_string(rng, reference.specials)
        text = raw.decode("utf-8", "replace")
        if not reference.differs.isdisjoint(text):
            text = "".join(c for c in text if c not in reference.differs)
            raw = text.encode()
        cases.append((rng.randrange(2), raw, text))
    return cases


def ids_of(driver, model, cases):
    stdin = b"".join(struct.pack("<II", flag, len(raw)) + raw for flag, raw, _ in cases)
    answer = memoryview(subprocess.run([driver, model], input=stdin, check=True, stdout=subprocess.PIPE).stdout)
    at, out = 0, []
    for _ in cases:
        (n,) = struct.unpack_from("<I", answer, at)
        out.append(list(struct.unpack_from(f"<{n}i", answer, at + 4)))
        at += 4 + 4 * n
    assert at == len(answer)
    return out


def main():
    driver, name = sys.argv[1:3]
    variable = "HEARTH_TEST_MODEL" if name in ("smollm2", "gpt2") else "HEARTH_TEST_VOCABULARIES"
    if not os.environ.get(variable):
        print(f"skipped: {variable} is not set", file=sys.stderr)
        return 77
    count = 1_000_000 if os.environ.get("HEARTH_VERIFY") else 20_000
    ours = subprocess.run([driver, "--classes"], check=True, stdout=subprocess.PIPE).stdout.decode()
    rng = random.Random(SEED)
    mismatches = specials = ids = done = 0
    with tempfile.TemporaryDirectory() as folder:
        model, reference = tokenizer_references.VOCABULARIES[name](
            pathlib.Path(folder), pathlib.Path(os.environ[variable]), ours, tokenizer_references.nfc_of(driver))
        while done < count:
            cases = make_cases(rng, min(BATCH, count - done), reference)
            done += len(cases)
            expected = [None] * len(cases)
            for flag in (0, 1):
                picked = [i for i, case in enumerate(cases) if case[0] == flag]
                for i, want in zip(picked, reference.encode([cases[i][2] for i in picked], flag == 1)):
                    expected[i] = want
            for (flag, raw, _), want, got in zip(cases, expected, ids_of(driver, model, cases)):
                ids += len(got)
                if flag:
                    specials += not reference.special_ids.isdisjoint(got)
                elif not reference.special_ids.isdisjoint(got):
                    mismatches += 1
                    print(f"control token from user text: {raw!r} -> {got}", file=sys.stderr)
                if got != list(want):
                    mismatches += 1
                    if mismatches <= 10:
                        print(f"mismatch, parse_special={flag}: {raw!r}\n  ours      {got}\n  reference {list(want)}", file=sys.stderr)
    print(f"{name}: {count} strings, {ids} ids, {specials} strings with control tokens, {mismatches} mismatches; "
          f"{len(reference.differs)} code points excluded", file=sys.stderr)
    return 0 if mismatches == 0 and specials > count // 20 and len(reference.differs) < 6_000 else 1


sys.exit(main())
