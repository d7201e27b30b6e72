#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of tests cite rows and sections that exist.

usage: check_requirements.py ROOT

A name such as S3_11_words or SX_2_S4_13_words begins with the rows that its test
is about: S3.11, SX.2, S4.13. Each is the first cell of a row of
test/REQUIREMENTS.md, or several begin with it (S3.26 stands for S3.26a, b, c);
S_3_words cites row S-3. P8_6_words cites section 8.6 of the protocol in
src/lib/wire/protocol. No two rows have one id.

The last table there has each row of the sections of the protocol that say what
to do better, as it is written there, and how the names of its tests begin, which
tests there are, unless it is not built. Tests in Python have such names in their
descriptions.

    check_requirements.py ROOT --missing      tells what is not built
"""
import collections
import pathlib
import re
import sys

TEST = re.compile(r"^TEST(?:_LIMIT)?\((\w+)", re.M)
# A word in Python that is a test's name.
WORD = re.compile(r"\b(?:P\d+_\d+|S_\d+)_\w+")
ROW = re.compile(r"^\| (S-\d+|[A-Z][A-Z0-9]?[.\d]*[a-z]?\d*) \|", re.M)
SECTION = re.compile(r"^#+ ([\d.]+?)\.? ", re.M)
# The longest citation at the begin of what is left of a name.
CITED = re.compile(r"(S[0-9X]_\d+[a-z]?|S_\d+|P\d+_\d+|[A-T]\d+)_")
# Sections whose rows are named one by one, and a row with its tests.
BETTER = ("9.12", "9.13", "11.10")
SHOWN = re.compile(r"^\| (\d+\.\d+) \| (.+?) \| ((?:`P\w+`(?:, )?)+)(: not built)? \|$", re.M)
CELL = re.compile(r"^\| (.+?) \|.*\n(?!\|-)", re.M)
RULES = re.compile(r"must refuse (.*?) in every id before sending, (keep .*? raw)")


def citations(name):
    """The rows and sections that the begin of a test's name cites."""
    while match := CITED.match(name):
        yield match[1]
        name = name[match.end():]


def exists(cited, rows, sections):
    if re.fullmatch(r"P\d+_\d+", cited):
        return cited[1:].replace("_", ".") in sections
    row = cited.replace("S_", "S-") if cited.startswith("S_") else cited.replace("_", ".")
    return row in rows or any(re.fullmatch(re.escape(row) + "[a-z]", r)
                              for r in rows)


def rows_of(text):
    """(section, row) of what the protocol says is better: the first cells of
    tables, or the rules of a sentence."""
    for section in BETTER:
        body = re.search(r"^#+ %s .*?(?=^#|\Z)" % re.escape(section), text, re.M | re.S)
        if not body:
            continue
        for row in CELL.findall(body[0]):
            if not row.startswith("-"):
                yield section, row
        if rules := RULES.search(body[0]):
            yield from ((section, rule) for rule in rules[1].split(", "))
            yield section, rules[2]


def unshown(root, names, is_missing_wanted):
    """Complaints about the table of what is better."""
    wanted = list(rows_of((root / "src/lib/wire/protocol/rest-and-cli.md").read_text()))
    table = SHOWN.findall((root / "test/REQUIREMENTS.md").read_text())
    shown = [(section, row) for section, row, _, _ in table]
    for section, row in wanted:
        if (section, row) not in shown:
            yield f"{section} of the protocol, {row}: no test is named"
    for section, row, tests, is_open in table:
        if (section, row) not in wanted:
            yield f"test/REQUIREMENTS.md: the protocol's {section} has no row {row}"
        for begin in re.findall(r"`(\w+)`", tests):
            if not begin.startswith(f"P{section.replace('.', '_')}_"):
                yield f"{begin} cites another section than {section}"
            elif not any(name.startswith(begin) for name in names) and (
                    not is_open or is_missing_wanted):
                yield f"{section} of the protocol, {row}: no test is called {begin}..."


def main():
    root = pathlib.Path(sys.argv[1])
    rows = ROW.findall((root / "test/REQUIREMENTS.md").read_text())
    sections = {number for path in (root / "src/lib/wire/protocol").glob("*.md")
                for number in SECTION.findall(path.read_text())}
    bad = n = 0
    for row, count in collections.Counter(rows).items():
        if count > 1:
            print(f"test/REQUIREMENTS.md: {count} rows are called {row}")
            bad = 1
    found = [(path, name) for path in sorted((root / "test").rglob("*.c"))
             for name in TEST.findall(path.read_text())]
    # The checks' own tests have names that are none.
    found += [(path, name) for path in sorted((root / "test").rglob("*.py"))
              if path.parent.name != "hygiene" for name in WORD.findall(path.read_text())]
    for path, name in found:
        for cited in citations(name):
            n += 1
            if not exists(cited, rows, sections):
                print(f"{path.relative_to(root)}: {name} cites {cited}, "
                      "which is no row and no section")
                bad = 1
    for complaint in unshown(root, [name for _, name in found], "--missing" in sys.argv):
        print(complaint)
        bad = 1
    if n == 0:
        print("no test cites a row: the check looks at the wrong place")
    return 1 if bad or n == 0 else 0


sys.exit(main())
