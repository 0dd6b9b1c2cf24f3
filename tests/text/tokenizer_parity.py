#!/usr/bin/env python3
"""Compares hearth's token ids with those of the PyPI package `tokenizers` on seeded strings: 0 mismatches allowed.

    tokenizer_parity.py DRIVER      environment: HEARTH_TEST_MODEL, HEARTH_VERIFY=1 for 10^6 strings

The reference pipeline is SmolLM2's: Digits(individual_digits), ByteLevel(add_prefix_space=False, use_regex=True), BPE.
Bytes that are no UTF-8 reach the reference as bytes.decode('utf-8', 'replace'). Code points that the two sides class
differently (their Unicode versions differ) are found by asking both about every code point, excluded and counted.
"""
import os
import random
import struct
import subprocess
import sys

import gguf
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

SEED = 20261201
CONTROL, USER_DEFINED = 3, 4


def reference(model_path):
    fields = gguf.GGUFReader(model_path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges, fuse_unk=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    )
    special = [t for t, k in zip(tokens, kinds) if k == CONTROL]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t, k in zip(tokens, kinds) if k == USER_DEFINED])
    return tokenizer, special


def reference_classes():
    """The letter, number, space or other of each code point as both halves of the pipeline see it; '?' = they disagree."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = pre_tokenizers.Digits(True)
    whole = lambda pre, text: len(pre.pre_tokenize_str(text)) == 1
    classes = []
    for cp in range(0x110000):
        if 0xD800 <= cp < 0xE000:
            classes.append("o")
            continue
        c = chr(cp)
        if whole(byte_level, "!" + c):
            found = "o"
        elif cp != 0x27 and whole(byte_level, "a" + c):
            found = "L"
        elif whole(byte_level, "1" + c):
            found = "N"
        else:
            found = "S"
        classes.append(found if whole(digits, "a" + c) == (found != "N") else "?")
    return "".join(classes)


WORDS = """the of and hello world I'm you're it's they'll we've can't DON'T 'sup O'Neil naïve Straße Ελλάδα москва
 你好 世界 こんにちは 안녕하세요 مرحبا שלום हिन्दी ไทย 1234567890 3.14159 0x7f 1e-9 ½ ² ٣ Ⅷ 一二三 snake_case camelCase
 https://example.com/a?b=c&d=e user@example.org #include <vector> std::vector<int> def f(x): return x+1 {"a":[1,2]}
 <|im_start|> <|im_end|> <|im_start|>system <|endoftext|> <repo_name> <|im_ <|endof </think> <s> [INST]
 👍 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 e\u0301 \u200b \ufeff \u00ad ... --- === !!! '''  \"\"\" \\n \\t \x00 \x04 \x7f""".split()
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n", "\n ", "\u00a0", "\u3000", "\u2028", "\u2003 ", "\x0b", "\x0c", "\x85", "\x1c"]
PLANES = [(0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x3FFFF), (0x40000, 0x10FFFF)]
BAD = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f", b"\xf0\x9f\x91", b"\x80", b"\xfe\xbf", b"\xe0\x80", b"\xc3"]


def make_string(rng):
    kind = rng.randrange(10)
    if kind == 0:  # any code points of one or several planes
        planes = rng.choices(PLANES, k=rng.randint(1, 3))
        return "".join(chr(cp) for cp in (rng.randint(*rng.choice(planes)) for _ in range(rng.randint(1, 24))) if not 0xD800 <= cp < 0xE000).encode()
    if kind == 1:  # any bytes
        return rng.randbytes(rng.randint(0, 24))
    if kind == 2:  # one thing many times
        return (rng.choice(WORDS + SPACES + list("aA.-_=/\\é中5")) * rng.randint(1, 60)).encode()[: rng.randint(1, 400)]
    if kind == 3:  # printable ASCII
        return bytes(rng.choices(range(0x20, 0x7F), k=rng.randint(0, 60)))
    if kind == 4:  # few different characters, many coincidences
        alphabet = rng.sample(list("etains' \n\t.ré1中Ġ") + SPACES, 4)
        return "".join(rng.choices(alphabet, k=rng.randint(1, 40))).encode()
    parts = []
    for _ in range(rng.randint(1, 16)):
        parts.append(rng.choice(WORDS).encode())
        if rng.random() < 0.8:
            parts.append(rng.choice(SPACES).encode())
        if kind == 5 and rng.random() < 0.3:
            parts.append(rng.choice(BAD))
    text = b"".join(parts)
    if kind == 6 and text:  # cut somewhere, also inside a character
        text = text[: rng.randrange(len(text))]
    if kind == 7:
        text = b"<|im_start|>user\n" + text + b"<|im_end|>\n<|im_start|>assistant\n"
    return text


def main():
    if not os.environ.get("HEARTH_TEST_MODEL"):
        print("skipped: HEARTH_TEST_MODEL is not set", file=sys.stderr)
        return 77
    driver, model = sys.argv[1], os.environ["HEARTH_TEST_MODEL"]
    count = 1_000_000 if os.environ.get("HEARTH_VERIFY") else 100_000
    ours = subprocess.run([driver, "--classes"], check=True, stdout=subprocess.PIPE).stdout.decode()
    theirs = reference_classes()
    excluded = {chr(cp) for cp in range(0x110000) if ours[cp] != theirs[cp]}
    tokenizer, special = reference(model)
    special_ids = {tokenizer.token_to_id(t) for t in special}

    rng = random.Random(SEED)
    cases = []
    while len(cases) < count:
        raw = make_string(rng)
        text = raw.decode("utf-8", "replace")
        if not excluded.isdisjoint(text):
            text = "".join(c for c in text if c not in excluded)
            raw = text.encode()
        cases.append((rng.randrange(2), raw, text))

    stdin = b"".join(struct.pack("<II", flag, len(raw)) + raw for flag, raw, _ in cases)
    answer = memoryview(subprocess.run([driver, model], input=stdin, check=True, stdout=subprocess.PIPE).stdout)
    mismatches, specials, at, ids = 0, 0, 0, 0
    expected = [None] * len(cases)
    for flag in (0, 1):
        tokenizer.encode_special_tokens = flag == 0
        picked = [i for i, case in enumerate(cases) if case[0] == flag]
        for i, encoding in zip(picked, tokenizer.encode_batch([cases[i][2] for i in picked], add_special_tokens=False)):
            expected[i] = encoding.ids
    for (flag, raw, text), want in zip(cases, expected):
        (n,) = struct.unpack_from("<I", answer, at)
        got = list(struct.unpack_from(f"<{n}i", answer, at + 4))
        at += 4 + 4 * n
        ids += n
        if flag:
            specials += len(special_ids.intersection(got))
        elif special_ids.intersection(got):
            mismatches += 1
            print(f"control token from user text: {raw!r} -> {got}", file=sys.stderr)
        if got != want:
            mismatches += 1
            if mismatches <= 10:
                print(f"mismatch, parse_special={flag}: {raw!r}\n  ours      {got}\n  reference {want}", file=sys.stderr)
    ok = mismatches == 0 and at == len(answer) and specials > count // 100 and len(excluded) < 100
    print(f"{count} strings, {ids} ids, {specials} with control tokens, {mismatches} mismatches; {len(excluded)} code points excluded", file=sys.stderr)
    return 0 if ok else 1


sys.exit(main())
