#!/usr/bin/env python3
"""Writes unicode_case_tables.cpp and unicode_property_tables.cpp: what Python's str methods know about letters, for the chat template interpreter.

    python3 src/text/make_case_tables.py        (a Python 3.11 has Unicode 14, which is the reference of the tests)
"""
import pathlib
import unicodedata

LAST = 0x110000


def chars():
    return (cp for cp in range(LAST) if not 0xD800 <= cp < 0xE000)


def progressions(values):
    """Sorted integers as (first, last, stride) with stride 1 or 2."""
    values, i = sorted(values), 0
    while i < len(values):
        best = (values[i], values[i], 1, 1)
        for stride in (1, 2):  # 2: where capitals and small letters take turns
            j = i
            while j + 1 < len(values) and values[j + 1] - values[j] == stride:
                j += 1
            if j - i + 1 > best[3]:
                best = (values[i], values[j], stride, j - i + 1)
        yield best[:3]
        i += best[3]


def fill(rows):
    lines, line = [], "   "
    for row in rows:
        if len(line) + 1 + len(row) > 150:
            lines.append(line)
            line = "   "
        line += " " + row
    return "\n".join(lines + [line])


def mapping(name, change):
    by_delta, special = {}, []
    for cp in chars():
        c = chr(cp)
        to = change(c)
        if to == c:
            continue
        if len(to) == 1:
            by_delta.setdefault(ord(to) - cp, []).append(cp)
        else:
            special.append((cp, to))
    rows = sorted((a, b, s, d) for d, cps in by_delta.items() for a, b, s in progressions(cps))
    text = f"constexpr CaseRow {name}_rows[] = {{\n{fill(f'{{0x{a:x}, 0x{b:x}, {s}, {d}}},' for a, b, s, d in rows)}\n}};\n"
    quoted = lambda s: '"' + "".join(f"\\x{byte:02x}" for byte in s.encode()) + '"'
    rows = fill(f"{{0x{cp:x}, {quoted(to)}}}," for cp, to in special)
    text += f"constexpr CaseSpecial {name}_special[] = {{\n{rows}\n}};\n"
    return text


def predicate(name, test):
    rows = progressions(cp for cp in chars() if test(chr(cp)))
    return f"constexpr PropertyRow {name}_rows[] = {{\n{fill(f'{{0x{a:x}, 0x{b:x}, {s}}},' for a, b, s in rows)}\n}};\n"


HEAD = f"""// Written by make_case_tables.py from Unicode {unicodedata.unidata_version}; not edited by hand.
// clang-format off
#include "text/unicode_case.h"

namespace text {{

namespace {{
"""

# Final sigma: what the rule looks through.
CASE_IGNORABLE = "'.:·\u2018\u2019\u2024\u2027\uff07\uff0e\ufe13\ufe52\ufe55\uff1a\u0387\u055f\u05f4"

PROPERTIES = {
    "lower": lambda c: c.islower(),
    "upper": lambda c: c.isupper(),
    "title": lambda c: unicodedata.category(c) == "Lt",
    "decimal": lambda c: c.isdecimal(),
    "digit": lambda c: c.isdigit(),
    "numeric": lambda c: c.isnumeric(),
    "alpha": lambda c: c.isalpha(),
    "not_printable": lambda c: not c.isprintable(),
    "case_ignorable": lambda c: unicodedata.category(c) in ("Mn", "Me", "Cf", "Lm", "Sk") or c in CASE_IGNORABLE,
}


def table_of(mapping_name, suffix, row):
    cases = "".join(f"        case CaseMapping::{m}: return {m}_{suffix};\n" for m in ("lower", "upper", "title"))
    return f"std::span<const {row}> {mapping_name}(CaseMapping mapping) {{\n    switch (mapping) {{\n{cases}    }}\n    return {{}};\n}}\n\n"


def main():
    folder = pathlib.Path(__file__).parent
    mappings = {"lower": lambda c: c.lower(), "upper": lambda c: c.upper(), "title": lambda c: c.title()}
    text = HEAD + "\n".join(mapping(name, change) for name, change in mappings.items()) + "}  // namespace\n\n"
    text += table_of("case_rows", "rows", "CaseRow") + table_of("case_specials", "special", "CaseSpecial")
    (folder / "unicode_case_tables.cpp").write_text(text + "}  // namespace text\n")

    text = HEAD + "\n".join(predicate(name, test) for name, test in PROPERTIES.items()) + "}  // namespace\n\n"
    cases = "".join(f"        case Property::{name}: return {name}_rows;\n" for name in PROPERTIES)
    text += f"std::span<const PropertyRow> property_rows(Property property) {{\n    switch (property) {{\n{cases}    }}\n    return {{}};\n}}\n\n"
    (folder / "unicode_property_tables.cpp").write_text(text + "}  // namespace text\n")


main()
