#!/usr/bin/env python3
"""Writes unicode_case_tables.cpp: what Python's str methods know about letters, for the chat template interpreter.

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
        if len(line) + 1 + len(row) > 128:
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


def main():
    parts = [
        f"// Written by make_case_tables.py from Unicode {unicodedata.unidata_version}; not edited by hand.\n"
        '#include "text/unicode_case.h"\n\nnamespace text {\n\nnamespace {\n',
        mapping("lower", lambda c: c.lower()),
        mapping("upper", lambda c: c.upper()),
        mapping("title", lambda c: c.title()),
        predicate("is_lower", lambda c: c.islower()),
        predicate("is_upper", lambda c: c.isupper()),
        predicate("is_title", lambda c: unicodedata.category(c) == "Lt"),
        predicate("is_decimal", lambda c: c.isdecimal()),
        predicate("is_digit", lambda c: c.isdigit()),
        predicate("is_numeric", lambda c: c.isnumeric()),
        predicate("is_alpha", lambda c: c.isalpha()),
        predicate("not_printable", lambda c: not c.isprintable()),
        # Final sigma: what the rule looks through.
        predicate("case_ignorable", lambda c: unicodedata.category(c) in ("Mn", "Me", "Cf", "Lm", "Sk") or c in "'.:·\u2018\u2019\u2024\u2027\uff07\uff0e\ufe13\ufe52\ufe55\uff1a\u0387\u055f\u05f4"),
        "}  // namespace\n\n",
        "std::span<const CaseRow> case_rows(CaseMapping m) {\n"
        "    return m == CaseMapping::lower ? std::span<const CaseRow>(lower_rows) : m == CaseMapping::upper ? std::span<const CaseRow>(upper_rows) : std::span<const CaseRow>(title_rows);\n}\n\n"
        "std::span<const CaseSpecial> case_specials(CaseMapping m) {\n"
        "    return m == CaseMapping::lower ? std::span<const CaseSpecial>(lower_special) : m == CaseMapping::upper ? std::span<const CaseSpecial>(upper_special) : std::span<const CaseSpecial>(title_special);\n}\n\n"
        "std::span<const PropertyRow> property_rows(Property p) {\n    switch (p) {\n"
        + "".join(
            f"        case Property::{n}: return {t}_rows;\n"
            for n, t in [("lower", "is_lower"), ("upper", "is_upper"), ("title", "is_title"), ("decimal", "is_decimal"), ("digit", "is_digit"), ("numeric", "is_numeric"), ("alpha", "is_alpha"), ("not_printable", "not_printable"), ("case_ignorable", "case_ignorable")]
        )
        + "    }\n    return {};\n}\n\n}  // namespace text\n",
    ]
    pathlib.Path(__file__).with_name("unicode_case_tables.cpp").write_text("\n".join(parts[:1]) + "\n".join(parts[1:]))


main()
