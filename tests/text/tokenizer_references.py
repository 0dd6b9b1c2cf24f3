"""The vocabularies that tokenizer_parity.py knows: each as a small GGUF, and the encoder that says what is right.

A reference has `specials` (texts of control tokens), `special_ids`, `differs` (code points that it classes otherwise than
hearth, for its Unicode version differs) and encode(list of texts, parse_special) -> list of ids.
"""
import base64
import json
import pathlib
import re
import struct
import subprocess
import unicodedata

import gguf
import sentencepiece
import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

# Letters as `tokenizer_driver --classes` prints them.
CLASSES = {"U": r"\p{Lu}", "W": r"\p{Ll}", "T": r"\p{Lt}", "M": r"\p{Lm}", "L": r"\p{Lo}", "K": r"\p{M}", "N": r"\p{N}", "P": r"\p{P}", "Y": r"\p{S}", "S": r"\s"}
EVERY = [cp for cp in range(0x110000) if not 0xD800 <= cp < 0xE000]


def difference(ours, pieces_of):
    """Code points whose class in `ours` is not what the reference's patterns find. pieces_of(pattern, text): the matches."""
    theirs = ["o"] * 0x110000
    text = "".join(map(chr, EVERY))
    for letter, pattern in CLASSES.items():
        for piece in pieces_of(pattern, text):
            for c in piece:
                theirs[ord(c)] = letter
    return {chr(cp) for cp in EVERY if theirs[cp] != ours[cp]}


def onig_pieces(pattern, text):
    return [p for p, _ in pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed", invert=True).pre_tokenize_str(text)]


def tiktoken_pieces(pattern, text):
    encoding = tiktoken.Encoding("classes", pat_str=f"(?:{pattern})+", mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={})
    return [bytes(encoding.encode(text, disallowed_special=())).decode()]


def write_gguf(path, model, tokens, kinds, *, pre=None, merges=None, scores=None, space_prefix=None, bos=None, eos):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    if merges is not None:
        writer.add_token_merges(merges)
    if scores is not None:
        writer.add_token_scores(scores)
    if space_prefix is not None:
        writer.add_add_space_prefix(space_prefix)
    if bos is not None:
        writer.add_bos_token_id(bos)
    writer.add_eos_token_id(eos)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


class HuggingFace:
    """A tokenizer.json and the PyPI package `tokenizers`."""

    def __init__(self, document, ours, normalize):
        self.tokenizer = Tokenizer.from_str(json.dumps(document))
        self.specials = [t["content"] for t in document["added_tokens"] if t["special"]]
        self.special_ids = {t["id"] for t in document["added_tokens"] if t["special"]}
        self.differs = difference(ours, onig_pieces)
        normalizer = self.tokenizer.normalizer
        if normalizer and "NFC" in json.dumps(document["normalizer"]):
            self.differs |= nfc_difference(normalizer.normalize_str, normalize, ours)

    def encode(self, texts, parse_special):
        self.tokenizer.encode_special_tokens = not parse_special
        return [e.ids for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]


def nfc_of(driver):
    """hearth's normal form C of one text."""

    def normalize(text):
        raw = text.encode()
        return subprocess.run([driver, "--nfc"], input=struct.pack("<II", 0, len(raw)) + raw, check=True, stdout=subprocess.PIPE).stdout[4:].decode()

    return normalize


def nfc_difference(theirs, ours, classes):
    """Code points that the two normal forms C treat otherwise, alone, among marks, or in pieces."""
    points = [cp for cp in EVERY if cp != 10]
    excluded = set()
    # U+0334 sorts before all other marks and U+0345 after them: where a code point lands says whether it is a mark.
    for probe in ("{}", "\u4e2d{}\u0334", "\u4e2d\u0345{}", "\u4e2d{}\u0323", "\u4e2d\u0302{}"):
        lines = "\n".join(probe.format(chr(cp)) for cp in points)
        excluded.update(chr(cp) for cp, a, b in zip(points, theirs(lines).split("\n"), ours(lines).split("\n")) if a != b)
    pieces = [unicodedata.normalize("NFD", chr(cp)) for cp in points]
    lines = "\n".join(pieces)
    for piece, a, b in zip(pieces, theirs(lines).split("\n"), ours(lines).split("\n")):
        if a != b:
            excluded.update(piece + a + b)
    # What Python doesn't know yet may have pieces that it doesn't know either. Ideographs of planes 2 and 3 have none.
    excluded.update(chr(cp) for cp in points if classes[cp] != "o" and unicodedata.category(chr(cp)) == "Cn" and cp >> 16 not in (2, 3))
    return excluded


class TikToken:
    def __init__(self, pattern, ranks, specials, ours):
        self.encoding = tiktoken.Encoding("reference", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
        self.specials, self.special_ids = list(specials), set(specials.values())
        self.differs = difference(ours, tiktoken_pieces)

    def encode(self, texts, parse_special):
        allowed = "all" if parse_special else set()
        return self.encoding.encode_batch(texts, allowed_special=allowed, disallowed_special=())


class SentencePiece:
    """sentencepiece itself knows no special tokens in a text: the text is cut at them, as mistral-common does."""

    def __init__(self, processor):
        self.processor = processor
        control = {processor.id_to_piece(i): i for i in range(processor.vocab_size()) if processor.is_control(i) or processor.is_unknown(i)}
        self.ids = control
        self.specials, self.special_ids = list(control), set(control.values())
        self.differs = set()
        self.cut = re.compile("(" + "|".join(re.escape(t) for t in sorted(control, key=len, reverse=True)) + ")")

    def encode(self, texts, parse_special):
        if not parse_special:
            return self.processor.encode(texts)
        return [[i for part in self.cut.split(t) if part for i in ([self.ids[part]] if part in self.ids else self.processor.encode(part))] for t in texts]


def parts_of(document):
    """Tokens and kinds of a tokenizer.json, by id; holes are unused tokens."""
    by_id = {i: (t, NORMAL) for t, i in document["model"]["vocab"].items()}
    for added in document["added_tokens"]:
        by_id[added["id"]] = (added["content"], CONTROL if added["special"] else USER_DEFINED)
    n = max(by_id) + 1
    rows = [by_id.get(i, (f"[PAD{i}]", UNUSED)) for i in range(n)]
    return [t for t, _ in rows], [k for _, k in rows]


def merges_of(document):
    return [m if isinstance(m, str) else " ".join(m) for m in document["model"]["merges"]]


def from_json(file, pre, bos, eos):
    def make(folder, vocabularies, ours, normalize):
        document = json.loads((vocabularies / file).read_text())
        tokens, kinds = parts_of(document)
        path = folder / "model.gguf"
        ids = {t["content"]: t["id"] for t in document["added_tokens"]}
        write_gguf(path, "gpt2", tokens, kinds, pre=pre, merges=merges_of(document), bos=ids.get(bos), eos=ids[eos])
        return path, HuggingFace(document, ours, normalize)

    return make


def gpt4o(folder, vocabularies, ours, normalize):
    """The same vocabulary as tiktoken has it: the ids are the ranks."""
    document = json.loads((vocabularies / "gpt4o.json").read_text())
    tokens, kinds = parts_of(document)
    path = folder / "model.gguf"
    specials = {t["content"]: t["id"] for t in document["added_tokens"]}
    write_gguf(path, "gpt2", tokens, kinds, pre="gpt-4o", merges=merges_of(document), eos=specials["<|endoftext|>"])
    spelled = {c: b for b, c in byte_spellings().items()}
    ranks = {bytes(spelled[c] for c in t): i for t, i in document["model"]["vocab"].items() if t not in specials}
    return path, TikToken(document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"], ranks, specials, ours)


def byte_spellings():
    """GPT-2's bytes_to_unicode."""
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}


def tekken(folder, vocabularies, ours, normalize):
    document = json.loads((vocabularies / "tekken.json").read_text())
    config = document["config"]
    n_special = config["default_num_special_tokens"]
    rows = document["vocab"][: config["default_vocab_size"] - n_special]
    ranks = {base64.b64decode(row["token_bytes"]): row["rank"] for row in rows}
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]"]
    names += [f"<SPECIAL_{i}>" for i in range(len(names), n_special)]
    spelling = byte_spellings()
    spell = lambda data: "".join(spelling[b] for b in data)
    # A merge for every way to cut a token in two, in the order of the ranks, as converters write them.
    merges = []
    for token, _ in sorted(ranks.items(), key=lambda item: item[1]):
        cuts = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges += [f"{spell(a)} {spell(b)}" for a, b in sorted(cuts, key=lambda cut: (ranks[cut[0]], ranks[cut[1]]))]
    path = folder / "model.gguf"
    tokens = names + [spell(token) for token, _ in sorted(ranks.items(), key=lambda item: item[1])]
    write_gguf(path, "gpt2", tokens, [CONTROL] * n_special + [NORMAL] * len(ranks), pre="tekken", merges=merges, bos=1, eos=2)
    reference = TikToken(config["pattern"], {t: r + n_special for t, r in ranks.items()}, {t: i for i, t in enumerate(names)}, ours)
    reference.specials = reference.specials[:20]
    return path, reference


def spm_from_json(file, space_prefix, bos, eos):
    """A tokenizer.json made from a SentencePiece model: the order of the ids is that of the scores."""

    def make(folder, vocabularies, ours, normalize):
        document = json.loads((vocabularies / file).read_text())
        for added in document["added_tokens"]:
            # SentencePiece looks for user-defined pieces in the text with U+2581 for spaces, `normalized` says the same.
            if not added["special"] and set(added["content"]) == {"▁"}:
                added["normalized"] = True
        tokens, kinds = parts_of(document)
        kinds = [BYTE if re.fullmatch("<0x[0-9A-F]{2}>", t) else k for t, k in zip(tokens, kinds)]
        # llama.cpp's converter writes those of spaces with spaces.
        tokens = [t.replace("▁", " ") if k == USER_DEFINED else t for t, k in zip(tokens, kinds)]
        # Pieces of spaces alone come last in the models that put a space before the text.
        scores = [-1e9 if space_prefix and set(t) == {"▁"} else -float(i) if k == NORMAL else -1000.0 for i, (t, k) in enumerate(zip(tokens, kinds))]
        ids = {t["content"]: t["id"] for t in document["added_tokens"]}
        path = folder / "model.gguf"
        write_gguf(path, "llama", tokens, kinds, pre="default", scores=scores, space_prefix=space_prefix, bos=ids[bos], eos=ids[eos])
        reference = HuggingFace(document, ours, normalize)
        reference.differs = set()  # no pattern asks for classes
        return path, reference

    return make


def mistral(folder, vocabularies, ours, normalize):
    p = sentencepiece.SentencePieceProcessor(model_file=str(vocabularies / "mistral.model"))
    n = range(p.vocab_size())
    kind = lambda i: CONTROL if p.is_control(i) else UNKNOWN if p.is_unknown(i) else BYTE if p.is_byte(i) else UNUSED if p.is_unused(i) else NORMAL
    path = folder / "model.gguf"
    write_gguf(path, "llama", [p.id_to_piece(i) for i in n], [kind(i) for i in n], scores=[p.get_score(i) for i in n], bos=p.bos_id(), eos=p.eos_id())
    return path, SentencePiece(p)


def smollm2(pre):
    """The default model's own vocabulary, under its own name or with GPT-2's pattern alone."""

    def make(folder, model, ours, normalize):
        fields = gguf.GGUFReader(model).fields
        tokens, kinds, merges = (fields["tokenizer.ggml." + key].contents() for key in ("tokens", "token_type", "merges"))
        path = pathlib.Path(model)
        if pre != "smollm":
            path = folder / "model.gguf"
            write_gguf(path, "gpt2", tokens, kinds, pre=pre, merges=merges, bos=1, eos=2)
        reference = HuggingFace.__new__(HuggingFace)
        tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges], fuse_unk=False))
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level]) if pre == "smollm" else byte_level
        reference.specials = [t for t, k in zip(tokens, kinds) if k == CONTROL]
        tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in reference.specials])
        tokenizer.add_tokens([AddedToken(t, normalized=False) for t, k in zip(tokens, kinds) if k == USER_DEFINED])
        reference.tokenizer = tokenizer
        reference.special_ids = {tokenizer.token_to_id(t) for t in reference.specials}
        reference.differs = difference(ours, onig_pieces)
        return path, reference

    return make


VOCABULARIES = {
    "smollm2": smollm2("smollm"),
    "gpt2": smollm2("gpt-2"),
    "llama3": from_json("llama3.json", "llama-bpe", "<|begin_of_text|>", "<|end_of_text|>"),
    "qwen3": from_json("qwen3.json", "qwen2", None, "<|im_end|>"),
    "deepseek_v3": from_json("deepseek_v3.json", "deepseek-v3", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "gptoss": from_json("gptoss.json", "gpt-4o", "<|startoftext|>", "<|return|>"),
    "gpt4o": gpt4o,
    "tekken": tekken,
    "llama2": spm_from_json("llama2.json", True, "<s>", "</s>"),
    "gemma3": spm_from_json("gemma3.json", False, "<bos>", "<eos>"),
    "mistral": mistral,
}
