#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every error code is what some test expects.

usage: check_errors.py ROOT

An expectation is a call of a test's checks (CHECK_INT, outcome_fails ...) or a
row of a table of outcomes, with the code in it; the codes are those of the
table in include/tnk/error.h.
"""
import pathlib
import re
import sys

CODE = re.compile(r"XX\((E[A-Z]+),\s*-\d+")
EXPECT = re.compile(r"(?:CHECK\w*|\w*(?:fail|refuse|expect|reject|outcome|"
                    r"load|check)\w*)\s*\(([^;]*)\)\s*;", re.S)
ROW = re.compile(r"\{[^{};]*\}", re.S)


def main():
    root = pathlib.Path(sys.argv[1])
    codes = CODE.findall((root / "include/tnk/error.h").read_text())
    expected = set()
    for path in sorted((root / "test").rglob("*.[ch]")):
        text = path.read_text()
        for piece in EXPECT.findall(text) + ROW.findall(text):
            expected.update(re.findall(r"\bTNK_(E[A-Z]+)\b", piece))
    missing = [code for code in codes if code not in expected]
    for code in missing:
        print(f"no test expects TNK_{code}")
    if not codes:
        print("no code found: the check looks at the wrong place")
    return 1 if missing or not codes else 0


sys.exit(main())
