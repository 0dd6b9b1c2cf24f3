#!/usr/bin/env python3
"""Compares every pre-tokenizer that hearth knows with the published pattern, as the PyPI package `tokenizers` runs it, and
normal form C with its NFC: 0 mismatches allowed.

    pretokenizer_parity.py DRIVER       environment: HEARTH_VERIFY=1 for 10^6 strings

Code points that the two sides class differently are excluded and counted.
"""
import os
import random
import struct
import subprocess
import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

from tokenizer_references import difference, nfc_difference, nfc_of, onig_pieces
from tokenizer_strings import make_string

SEED = 20261202
BATCH = 20_000

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SEED_CODER = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
HEAD, TAIL, CONTRACTION = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{HEAD}*{TAIL}+{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?{HEAD}+{TAIL}*{CONTRACTION}"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = O200K.replace(CONTRACTION, "").replace(r"\p{N}{1,3}", r"\p{N}")
CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# deepseek-llm's letters: the scripts with case.
CASED = (
    "[A-Za-z\u00b5À-ÖØ-öø-ƺƼ-ƿ\u01c4-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-\u03f5Ϸ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼ\u2102\u2107\u210a-\u2113\u2115\u2119-"
    "\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149ⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿ\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]"
)
V3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^" "\r\n" r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[" "\r\n" r"]*|\s*[" "\r\n" r"]+|\s+(?!\S)|\s+")
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
# The published pipelines, and the names in tokenizer.ggml.pre that mean them.
PIPELINES = [
    ([GPT2], "gpt-2 phi-2 mpt olmo jais gigachat exaone4 a.x-4.0 mellum trillion granite-docling"),
    ([r"\p{N}", GPT2], "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2"),
    ([CL100K], "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 dbrx smaug-bpe glm4 chatglm-bpe"),
    ([QWEN2], "qwen2 deepseek-r1-qwen megrez stablelm2 hunyuan grok-2 solar-open"),
    ([QWEN35], "qwen35"),
    ([SEED_CODER], "seed-coder"),
    ([r"\p{N}{1,3}", CL100K.replace(r"\p{N}{1,3}", r"\p{N}+")], "minicpm5"),
    ([O200K], "gpt-4o llama4 minimax-m2"),
    ([TEKKEN], "tekken"),
    (["[\r\n]", rf"\s?{CASED}+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", CJK, r"\p{N}"], "deepseek-llm"),
    (["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"], "deepseek-coder"),
    ([r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", V3], "deepseek-v3"),
    ([r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"], "falcon"),
    ([r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"], "default"),
    ([BLOOM], "bloom poro-chat gpt3-finnish"),
    ([BLOOM, r"\p{N}"], "viking"),
]


def answers(driver, option, records):
    output = memoryview(subprocess.run([driver, option], input=b"".join(records), check=True, stdout=subprocess.PIPE).stdout)
    at = 0
    for _ in records:
        (n,) = struct.unpack_from("<I", output, at)
        size = 1 if option == "--nfc" else 4
        yield bytes(output[at + 4 : at + 4 + size * n])
        at += 4 + size * n
    assert at == len(output)


def report(what, text, got, want):
    print(f"mismatch, {what}: {text!r}\n  ours      {got}\n  reference {want}", file=sys.stderr)


def splits(driver, count, excluded):
    known = subprocess.run([driver, "--names"], check=True, stdout=subprocess.PIPE).stdout.decode().strip().split(", ")
    listed = [name for _, names in PIPELINES for name in names.split()]
    if sorted(known) != sorted(listed):
        print(f"hearth knows {sorted(set(known) ^ set(listed))} otherwise than this test", file=sys.stderr)
        return 1
    rng, mismatches = random.Random(SEED), 0
    for patterns, names in PIPELINES:
        reference = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in patterns])
        done = 0
        while done < count:
            texts = []
            while len(texts) < min(BATCH, count - done):
                texts.append("".join(c for c in make_string(rng).decode("utf-8", "replace") if c not in excluded))
            done += len(texts)
            wanted = [[len(t[a:b].encode()) for _, (a, b) in reference.pre_tokenize_str(t)] for t in texts]
            for name in names.split():
                head = struct.pack("<I", len(name)) + name.encode()
                records = [head + struct.pack("<I", len(raw)) + raw for raw in map(str.encode, texts)]
                for text, want, got in zip(texts, wanted, answers(driver, "--split", records)):
                    got = list(struct.unpack(f"<{len(got) // 4}i", got))
                    if got != want:
                        mismatches += 1
                        if mismatches <= 10:
                            report(name, text, got, want)
    print(f"{len(known)} pre-tokenizers, {count} strings for each of {len(PIPELINES)} pipelines: {mismatches} mismatches", file=sys.stderr)
    return mismatches


def normal_forms(driver, count, ours):
    reference = normalizers.NFC()
    excluded = nfc_difference(reference.normalize_str, nfc_of(driver), ours)
    rng, mismatches = random.Random(SEED), 0
    decomposed = [chr(cp) for cp in range(0xC0, 0x30000) if unicodedata.decomposition(chr(cp))[:1] not in ("", "<")]
    marks = [chr(cp) for cp in range(0x300, 0x20000) if unicodedata.combining(chr(cp))]
    texts = []
    while len(texts) < count:
        kind = rng.randrange(3)
        if kind == 0:
            text = make_string(rng).decode("utf-8", "replace")
        elif kind == 1:  # characters in pieces, the pieces in disorder
            text = "".join(unicodedata.normalize("NFD", c) + "".join(rng.choices(marks, k=rng.randrange(3))) for c in rng.choices(decomposed, k=rng.randint(1, 12)))
        else:  # Hangul
            text = "".join(chr(rng.choice((rng.randint(0x1100, 0x1113), rng.randint(0x1160, 0x1176), rng.randint(0x11A7, 0x11C3), rng.randint(0xAC00, 0xD7A3)))) for _ in range(rng.randint(1, 12)))
        texts.append("".join(c for c in text if c not in excluded))
    records = [struct.pack("<II", 0, len(raw)) + raw for raw in map(str.encode, texts)]
    for text, got in zip(texts, answers(driver, "--nfc", records)):
        want = reference.normalize_str(text)
        if got.decode() != want:
            mismatches += 1
            if mismatches <= 10:
                report("NFC", text, ascii(got.decode()), ascii(want))
    print(f"normal form C of {count} strings: {mismatches} mismatches; {len(excluded)} code points excluded", file=sys.stderr)
    return mismatches + (len(excluded) > 6_000)


def main():
    driver = sys.argv[1]
    count = 1_000_000 if os.environ.get("HEARTH_VERIFY") else 20_000
    ours = subprocess.run([driver, "--classes"], check=True, stdout=subprocess.PIPE).stdout.decode()
    excluded = difference(ours, onig_pieces)
    print(f"{len(excluded)} code points excluded", file=sys.stderr)
    return 1 if normal_forms(driver, count, ours) + splits(driver, count, excluded) + (len(excluded) > 100) else 0


sys.exit(main())
