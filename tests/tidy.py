#!/usr/bin/env python3
"""Checks the house's rules over the tracked files; prints each breach as file:line: rule; exit 1 if there are any.

Arrows: a folder includes only what its row allows. Banned calls with their replacement. Left-over marks, blobs,
long lines, long files, machine paths, tests that mirror the sources, the limits table in ARCHITECTURE.md.
`--headers CXX` also compiles every header alone. `--canary` feeds each rule a breach and fails if none is reported.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# folder -> folders it may include (itself always). Longest prefix wins.
ARROWS = {
    "src/base": [],
    "quant": ["base"],
    "src/gguf": ["base", "quant"],
    "kernels": ["base", "quant"],
    "src/text": ["base", "gguf"],
    "src/model": ["base", "quant", "gguf", "kernels"],
    "src/engine": ["base", "text", "model"],
    "src/json": ["base"],
    "src/client": ["base", "json"],
    "src/server": ["base", "json", "text", "engine"],
    "src/commands": None,  # wiring: all
    "src": None,
    "tests": None,
    "bench": None,
}
FOLDERS = ["base", "quant", "gguf", "kernels", "text", "model", "engine", "json", "client", "server", "commands"]
# Asio and Beast live only here.
BOOST = ["src/server", "src/client", "src/commands", "tests", "bench"]

BANNED = [  # pattern, what instead, where it is allowed
    (r"\bstd::regex\b|#include <regex>", "a hand-written matcher: std::regex recurses on its input", []),
    (r"\bstrcpy\(|\bstrcat\(|\bsprintf\(|\bgets\(", "std::string or snprintf", []),
    (r"\brand\(\)|\bsrand\(", "a seeded generator", []),
    (r"\bstd::thread::hardware_concurrency\b", "kernels::cpu's count, which knows affinity and cgroups", []),
    (r"\bsystem\(|\bpopen\(", "nothing: the program starts no other program", ["tests"]),
    (r"\busing namespace std;", "names with std::", []),
    (r"[Cc]lock::now\(", "base::Clock", ["src/base", "kernels", "tests", "bench"]),  # under an alias too
]
MARKS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.$}])/(work|root|home)/[A-Za-z0-9_.-]+")
LINE_MAX = 200
FILE_LINES_MAX = 520
BLOB_BYTES_MAX = 512 * 1024
# Exceptions by name, each with its reason.
LONG_FILES = {
    "src/text/unicode_tables.cpp": "generated",
}
LONG_LINES = {"src/option_table.cpp": "rows of the option table"}


def tracked():
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [p for p in out.decode().split("\0") if p and (ROOT / p).is_file()]


def row_of(path):
    best = max((k for k in ARROWS if path.startswith(k + "/")), key=len, default=None)
    return best, ARROWS.get(best) if best else None


def check_text(path, text):
    problems = []
    code = path.endswith((".cpp", ".h"))
    row, allowed = row_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        at = f"{path}:{number}"
        if code:
            include = re.match(r'\s*#include "([^"]+)"', line)
            if include and row and allowed is not None:
                target = include.group(1).split("/")[0] if "/" in include.group(1) else None
                own = row.split("/")[-1]
                if target in FOLDERS and target != own and target not in allowed:
                    problems.append(f"{at}: {row} may not include {target}")
            if re.match(r"\s*#include <boost/", line) and not any(path.startswith(b + "/") for b in BOOST):
                problems.append(f"{at}: Boost lives only in {', '.join(BOOST)}")
            bare = line.split("//")[0]
            for pattern, instead, where in BANNED:
                if re.search(pattern, bare) and not any(path.startswith(w + "/") for w in where):
                    problems.append(f"{at}: banned; use {instead}")
            if len(line) > LINE_MAX and path not in LONG_LINES:
                problems.append(f"{at}: line of {len(line)} characters, {LINE_MAX} allowed")
        if MARKS.search(line) and path != "tests/tidy.py":
            problems.append(f"{at}: left-over mark")
        if MACHINE_PATH.search(line) and not path.startswith("tests/") and not path.endswith("package-lock.json"):
            problems.append(f"{at}: path of a machine")
    lines = text.count("\n")
    if code and lines > FILE_LINES_MAX and path not in LONG_FILES and not path.startswith("tests/"):
        problems.append(f"{path}: {lines} lines, {FILE_LINES_MAX} allowed")
    return problems


def check_limits():
    """ARCHITECTURE.md carries the limits table as limits_table.py prints it."""
    sys.path.insert(0, str(ROOT / "tests"))
    import limits_table

    if limits_table.table() not in (ROOT / "ARCHITECTURE.md").read_text():
        return ["ARCHITECTURE.md: its limits table differs from what tests/limits_table.py prints"]
    return []


def check_tests():
    """Every room with sources has a test folder with at least one test."""
    problems = []
    files = tracked()
    for row in ARROWS:
        if row in ("src", "tests", "bench"):
            continue
        room = row.split("/")[-1]
        if any(f.startswith(row + "/") and f.endswith(".cpp") for f in files):
            if not any(f.startswith(f"tests/{room}/") and f.endswith((".cpp", ".py")) for f in files):
                problems.append(f"tests/{room}: no test of {row}")
    return problems


def check_headers(compiler):
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for path in tracked():
            if not path.endswith(".h") or path.startswith("tests/") or path.endswith(".inc.h"):
                continue
            unit = pathlib.Path(folder) / "one.cpp"
            include = path[4:] if path.startswith("src/") else path
            unit.write_text(f'#include "{include}"\n#include "{include}"\n')
            command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", '-DHEARTH_VERSION="0"', f"-I{ROOT}", f"-I{ROOT}/src", str(unit)]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode or run.stderr:
                problems.append(f"{path}: does not compile alone: {run.stderr.splitlines()[:1]}")
    return problems


def canary():
    breaches = {
        "src/base/a.cpp": '#include "engine/engine.h"\n',
        "src/text/a.cpp": "#include <boost/asio.hpp>\n",
        "src/json/a.cpp": "std::regex r;\n",
        "src/engine/a.cpp": "auto t = std::chrono::steady_clock::now();\n",
        "src/model/a.cpp": "// " + "TO" + "DO later\n",
        "src/gguf/a.cpp": 'const char* p = "/home/someone/file";\n',
        "src/server/a.cpp": "x" * (LINE_MAX + 1) + "\n",
        "kernels/a.cpp": "\n" * (FILE_LINES_MAX + 1),
    }
    silent = [path for path, text in breaches.items() if not check_text(path, text)]
    for path in silent:
        print(f"canary: no rule spoke up for {path}")
    return 1 if silent else 0


def main():
    if "--canary" in sys.argv:
        return canary()
    if not (ROOT / ".git").exists():
        print("not a git checkout")
        return 77
    problems = []
    for path in tracked():
        if os.path.getsize(ROOT / path) > BLOB_BYTES_MAX:
            problems.append(f"{path}: over {BLOB_BYTES_MAX} bytes; can a script make it?")
            continue
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path.startswith("tests/fuzz/corpus/"):
            continue
        problems += check_text(path, text)
    problems += check_limits() + check_tests()
    if "--headers" in sys.argv:
        problems += check_headers(sys.argv[sys.argv.index("--headers") + 1])
    print("\n".join(problems))
    return 1 if problems else 0


sys.exit(main())
