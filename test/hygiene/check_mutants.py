#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The entries of test/mutants/mutants.txt fit the tree as it is.

usage: check_mutants.py ROOT

run.py there makes them, which takes long; this only sees that the old text of
each occurs exactly once in its file, that its programs are there, and that the
rows in its title are rows of test/REQUIREMENTS.md, or sections of the protocol
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
    folder, _, name = program.removesuffix("_release").partition("_")
    return (root / f"test/{folder}/test_{name or folder}.c").is_file()


def faults(root, entry, rows):
    lines = entry.splitlines()
    title = lines[0].removeprefix("== ").split(" ", 1)
    cited, colon, _ = title[1].partition(":")
    for row in cited.split(", ") if colon else []:
        if row not in rows and not re.fullmatch(r"P\d+\.\d+", row):
            yield f"{row} is no row of test/REQUIREMENTS.md"
    members = dict(re.findall(r"^(file|tests): (.*)$", entry, re.M))
    for program in members.get("tests", "").split():
        if not is_there(root, program):
            yield f"there is no program {program}"
    path = root / members.get("file", "?")
    if not path.is_file():
        yield f"there is no {members.get('file')}"
        return
    old = [line[1:] for line in lines if line.startswith("-")]
    found = count(path.read_text().splitlines(), old)
    if not old or found != 1:
        yield f"its old text occurs {found} times in {members['file']}"


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
