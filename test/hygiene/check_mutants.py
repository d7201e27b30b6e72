#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The entries of test/mutants/mutants.txt fit the tree as it is.

usage: check_mutants.py ROOT

run.py there makes them, which takes long; this only sees that the old text of
each edit occurs exactly once in its file, that its programs and the named parts
of their cases are there, and that the rows in its title are rows of test/REQUIREMENTS.md, or sections of the protocol
(P8.7).
"""
import pathlib
import re
import sys

ROW = re.compile(r"^\| ([A-Z][A-Z0-9]?[.\d]*[a-z]?\d*) \|", re.M)


def count(lines, part):
    """How often `part` occurs in `lines`, blanks at their ends apart."""
    lines, part = ([s.strip() for s in them] for them in (lines, part))
    return sum(lines[i:i + len(part)] == part
               for i in range(len(lines) - len(part) + 1))


def is_there(root, program):
    """Whether there is a program such as flow_limiter or silence, or a test of
    Meson such as cli/cli_weights, whose name may be composed in a meson.build."""
    suite, slash, name = program.partition("/")
    if slash:
        names = {name, name.removeprefix(suite + "_")}
        files = (root / "test").rglob("meson.build")
        return any(f"'{n}'" in path.read_text() for path in files for n in names)
    program, _, part = program.partition(":")
    folder, _, name = program.removesuffix("_release").partition("_")
    path = root / f"test/{folder}/test_{name or folder}.c"
    return path.is_file() and part in path.read_text()


def edits(entry):
    """The edits of an entry: (file, the lines of its old text)."""
    made = []
    for line in entry.splitlines():
        if line.startswith("file: "):
            made.append((line.removeprefix("file: "), []))
        elif line.startswith("-") and made:
            made[-1][1].append(line[1:])
    return made


def faults(root, entry, rows):
    lines = entry.splitlines()
    title = lines[0].removeprefix("== ").split(" ", 1)
    cited, colon, _ = title[1].partition(":")
    for row in cited.split(", ") if colon else []:
        if row not in rows and not re.fullmatch(r"P\d+\.\d+", row):
            yield f"{row} is no row of test/REQUIREMENTS.md"
    for program in " ".join(re.findall(r"^tests: (.*)$", entry, re.M)).split():
        if not is_there(root, program):
            yield f"there is no program {program}"
    if not edits(entry):
        yield "it has no line `file:`"
    for file, old in edits(entry):
        path = root / file
        if not path.is_file():
            yield f"there is no {file}"
            continue
        found = count(path.read_text().splitlines(), old)
        if not old or found != 1:
            yield f"its old text occurs {found} times in {file}"


def main():
    root = pathlib.Path(sys.argv[1])
    rows = ROW.findall((root / "test/REQUIREMENTS.md").read_text())
    text = (root / "test/mutants/mutants.txt").read_text()
    entries = re.findall(r"^== .*(?:\n(?!== ).*)*", text, re.M)
    bad = 0
    for entry in entries:
        name = entry.split()[1]
        for fault in faults(root, entry, rows):
            print(f"test/mutants/mutants.txt: {name}: {fault}")
            bad = 1
    if not entries:
        print("no entry found: the check looks at the wrong place")
    return 1 if bad or not entries else 0


sys.exit(main())
