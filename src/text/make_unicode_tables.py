#!/usr/bin/env python3
"""Writes unicode_tables.cpp: the classes of code points that pre-tokenizers ask for.

Python's own unicodedata is as old as the interpreter; the PyPI package unicodedata2 carries a chosen Unicode version.
Version 16 is the one that the reference (`tokenizers` 0.23) knows: only 13 numbers of Unicode 17 differ.

    pip install unicodedata2==16.0.0 && python3 src/text/make_unicode_tables.py
"""
import pathlib

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

CLASSES = {"Lu": "U", "Ll": "W", "Lt": "T", "Lm": "M", "Lo": "L", "M": "K", "N": "N", "P": "P", "S": "Y"}
NAMES = {"U": "upper", "W": "lower", "T": "title", "M": "modifier", "L": "letter", "K": "mark", "N": "number", "P": "punctuation", "Y": "symbol", "S": "space"}


def class_of(code_point: int) -> str:
    if 0xD800 <= code_point < 0xE000:
        return ""
    category = unicodedata.category(chr(code_point))
    # White_Space of the Unicode standard: the separators and six control characters.
    if category[0] == "Z" or 0x09 <= code_point <= 0x0D or code_point == 0x85:
        return "S"
    return CLASSES.get(category) or CLASSES.get(category[0], "")


def ranges():
    start, current = 0, ""
    for code_point in range(0x110001):
        found = class_of(code_point) if code_point < 0x110000 else ""
        if found != current:
            if current:
                yield start, code_point - 1, current
            start, current = code_point, found


def main() -> None:
    rows = [f"{{0x{a:x}, 0x{b:x}, {c}}}," for a, b, c in ranges()]
    lines, line = [], "   "
    for row in rows:
        if len(line) + 1 + len(row) > 118:
            lines.append(line)
            line = "   "
        line += " " + row
    lines.append(line)
    text = (
        f"// Written by make_unicode_tables.py from Unicode {unicodedata.unidata_version}; not edited by hand.\n// clang-format off\n"
        '#include "text/unicode.h"\n\n'
        "namespace text {\n\n"
        "namespace {\n" + "".join(f"constexpr CharClass {k} = CharClass::{v};\n" for k, v in NAMES.items()) + "\n"
        "constexpr ClassRange ranges[] = {\n" + "\n".join(lines) + "\n};\n}  // namespace\n\n"
        "std::span<const ClassRange> class_ranges() { return ranges; }\n\n"
        "}  // namespace text\n"
    )
    pathlib.Path(__file__).with_name("unicode_tables.cpp").write_text(text)


main()
