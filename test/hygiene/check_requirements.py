#!/usr/bin/env python3
"""Names of tests cite rows and sections that exist.

usage: check_requirements.py ROOT

A name such as S3_11_words or SX_2_S4_13_words begins with the rows that its test
is about: S3.11, SX.2, S4.13. Each is the first cell of a row of
test/REQUIREMENTS.md, or several begin with it (S3.26 stands for S3.26a, b, c).
P8_6_words cites section 8.6 of the protocol in src/codec/protocol. No two rows
have one id.
"""
import collections
import pathlib
import re
import sys

TEST = re.compile(r"^TEST(?:_LIMIT)?\((\w+)", re.M)
ROW = re.compile(r"^\| ([A-Z][A-Z0-9]?[.\d]*[a-z]?\d*) \|", re.M)
SECTION = re.compile(r"^#+ ([\d.]+?)\.? ", re.M)
# The longest citation at the begin of what is left of a name.
CITED = re.compile(r"(S[0-9X]_\d+[a-z]?|P\d+_\d+|[A-T]\d+)_")


def citations(name):
    """The rows and sections that the begin of a test's name cites."""
    while match := CITED.match(name):
        yield match[1]
        name = name[match.end():]


def exists(cited, rows, sections):
    if re.fullmatch(r"P\d+_\d+", cited):
        return cited[1:].replace("_", ".") in sections
    row = cited.replace("_", ".")
    return row in rows or any(re.fullmatch(re.escape(row) + "[a-z]", r)
                              for r in rows)


def main():
    root = pathlib.Path(sys.argv[1])
    rows = ROW.findall((root / "test/REQUIREMENTS.md").read_text())
    sections = {number for path in (root / "src/codec/protocol").glob("*.md")
                for number in SECTION.findall(path.read_text())}
    bad = n = 0
    for row, count in collections.Counter(rows).items():
        if count > 1:
            print(f"test/REQUIREMENTS.md: {count} rows are called {row}")
            bad = 1
    for path in sorted((root / "test").rglob("*.c")):
        for name in TEST.findall(path.read_text()):
            for cited in citations(name):
                n += 1
                if not exists(cited, rows, sections):
                    print(f"{path.relative_to(root)}: {name} cites {cited}, "
                          "which is no row and no section")
                    bad = 1
    if n == 0:
        print("no test cites a row: the check looks at the wrong place")
    return 1 if bad or n == 0 else 0


sys.exit(main())
