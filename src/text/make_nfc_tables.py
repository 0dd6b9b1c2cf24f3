#!/usr/bin/env python3
"""Writes unicode_nfc_tables.cpp: canonical decompositions and combining classes, for normal form C.

    pip install unicodedata2==16.0.0 && python3 src/text/make_nfc_tables.py
"""
import pathlib

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic


def wrapped(rows):
    lines, line = [], "   "
    for row in rows:
        if len(line) + 1 + len(row) > 190:
            lines.append(line)
            line = "   "
        line += " " + row
    return "\n".join(lines + [line])


def decompositions():
    for code_point in range(0x110000):
        text = unicodedata.decomposition(chr(code_point))
        if not text or text.startswith("<") or code_point in HANGUL:
            continue
        parts = [int(part, 16) for part in text.split()] + [0]
        # Excluded from composition: what the composed form of its own parts is not.
        composes = unicodedata.normalize("NFC", chr(code_point)) == chr(code_point)
        yield f"{{0x{code_point:x}, 0x{parts[0]:x}, 0x{parts[1]:x}, {int(composes)}}},"


def classes():
    start, current = 0, 0
    for code_point in range(0x110001):
        found = unicodedata.combining(chr(code_point)) if code_point < 0x110000 else 0
        if found != current:
            if current:
                yield f"{{0x{start:x}, 0x{code_point - 1:x}, {current}}},"
            start, current = code_point, found


def main() -> None:
    text = (
        f"// Written by make_nfc_tables.py from Unicode {unicodedata.unidata_version}; not edited by hand.\n// clang-format off\n"
        '#include "text/unicode_nfc.h"\n\nnamespace text {\n\nnamespace {\n'
        "constexpr Decomposition decomposition_rows[] = {\n" + wrapped(decompositions()) + "\n};\n\n"
        "constexpr CombiningRange combining_rows[] = {\n" + wrapped(classes()) + "\n};\n}  // namespace\n\n"
        "std::span<const Decomposition> decompositions() { return decomposition_rows; }\n"
        "std::span<const CombiningRange> combining_ranges() { return combining_rows; }\n\n}  // namespace text\n"
    )
    pathlib.Path(__file__).with_name("unicode_nfc_tables.cpp").write_text(text)


main()
