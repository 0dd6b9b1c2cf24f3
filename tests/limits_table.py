#!/usr/bin/env python3
"""Prints the limits of src/base/limits.h as the table of ARCHITECTURE.md. tests/tidy.py checks that the page has it."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent


def table():
    rows = ["| limit | value | what it bounds |", "|---|---|---|"]
    for line in (ROOT / "src/base/limits.h").read_text().splitlines():
        section = re.match(r"// --- (.*?) -+$", line)
        if section:
            rows.append(f"| **{section.group(1)}** | | |")
        row = re.match(r"inline constexpr \w+ (\w+) = (.*?);\s*(?://\s*(.*))?$", line)
        if row and row.group(1) != "kib":
            name, value, comment = row.groups()
            value = value.replace("'", ",").replace(" * kib", " KiB").replace(" * mib", " Mi" + ("B" if "bytes" in name else "")).replace(" << 20", " Mi")
            rows.append(f"| `{name}` | {value} | {(comment or '').strip()} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
