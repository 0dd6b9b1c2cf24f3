"""Seeded strings for the comparisons of tokenizers: all planes, code, chat logs, one thing many times, bad bytes."""

WORDS = """the of and hello world I'm you're it's they'll we've can't DON'T 'sup O'Neil naïve Straße Ελλάδα москва
 你好 世界 こんにちは 안녕하세요 مرحبا שלום हिन्दी ไทย 1234567890 3.14159 0x7f 1e-9 ½ ² ٣ Ⅷ 一二三 snake_case camelCase HTTPServer XMLHttpRequest
 https://example.com/a?b=c&d=e user@example.org #include <vector> std::vector<int> def f(x): return x+1 {"a":[1,2]} //// a/b/ };\n\n}
 <|im_start|> <|im_end|> <|im_start|>system <|endoftext|> <repo_name> <|im_ <|endof </think> <s> </s> [INST] [/INST] <0x0A> <unk>
 <start_of_turn>user <end_of_turn> <|eot_id|> <|start_header_id|> <｜User｜> <｜end▁of▁sentence｜> <|channel|>final ▁ ▁▁ ▁a [PAD7] <table>
 👍 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 e\u0301 A\u030a\u0327 \u1112\u1161\u11ab \u0958 \u212b \u0f43 \u200b \ufeff \u00ad ... --- === !!! '''  \"\"\" \\n \\t \x00 \x04 \x7f
 'S 'T 'RE 'Ve 'LL 'ſ ſ K ǅ ʰ ª ΣΑΣ áÉíÓ Ünïcödé $100 €5 +1-2=3 x^2~y|z` ，。、！？ 「テスト」 ｆｕｌｌ ۔، ।""".split()
SPACES = [" ", "  ", "   ", " " * 7, " " * 40, "\n", "\n\n", "\n" * 40, "\r\n", "\r", "\t", "\t\t", " \n", "\n ", "\n\n  ", "\u00a0", "\u3000", "\u2028", "\u2003 ", "\x0b", "\x0c", "\x85", "\x1c"]
PLANES = [(0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x3FFFF), (0x40000, 0x10FFFF)]
BAD = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f", b"\xf0\x9f\x91", b"\x80", b"\xfe\xbf", b"\xe0\x80", b"\xc3"]
# One of each class that the patterns know, and what they name.
MIXED = list("etainsEADLR' \n\r\t./-,_$1½٣r中かァ한éÉſKǅʰªa\u0301\u0903\u0e31▁<>|`\u200d\u0000\u0378Ġ")


def make_string(rng, specials=()):
    """Bytes, not always UTF-8. `specials`: texts of the vocabulary's special tokens."""
    kind = rng.randrange(12)
    if kind == 0:  # any code points of one or several planes
        planes = rng.choices(PLANES, k=rng.randint(1, 3))
        return "".join(chr(cp) for cp in (rng.randint(*rng.choice(planes)) for _ in range(rng.randint(1, 24))) if not 0xD800 <= cp < 0xE000).encode()
    if kind == 1:  # any bytes
        return rng.randbytes(rng.randint(0, 24))
    if kind == 2:  # one thing many times
        return (rng.choice(WORDS + SPACES + MIXED) * rng.randint(1, 60)).encode()[: rng.randint(1, 400)]
    if kind == 3:  # printable ASCII
        return bytes(rng.choices(range(0x20, 0x7F), k=rng.randint(0, 60)))
    if kind == 4:  # few different characters, many coincidences
        alphabet = rng.sample(MIXED + SPACES, 4)
        return "".join(rng.choices(alphabet, k=rng.randint(1, 40))).encode()
    if kind == 5:  # the classes of characters in any order
        return "".join(rng.choices(MIXED, k=rng.randint(1, 30))).encode()
    parts = []
    for _ in range(rng.randint(1, 16)):
        parts.append(rng.choice(WORDS).encode())
        if rng.random() < 0.8:
            parts.append(rng.choice(SPACES).encode())
        if kind == 6 and rng.random() < 0.3:
            parts.append(rng.choice(BAD))
        if kind in (7, 8) and specials and rng.random() < 0.4:
            parts.append(rng.choice(specials).encode())
    text = b"".join(parts)
    if kind == 9 and text:  # cut somewhere, also inside a character
        text = text[: rng.randrange(len(text))]
    if kind == 10 and specials:
        text = rng.choice(specials).encode() + b"user\n" + text + rng.choice(specials).encode() + b"\n" + rng.choice(specials).encode() + b"assistant\n"
    return text
