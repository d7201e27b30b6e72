#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables and state diagrams in comments are not damaged by the formatter.

usage: check_diagrams.py ROOT

clang-format joins and breaks lines of a comment that are too long for the page.
The check knows two signs of that: a line of a table begins with "| " and does
not end with "|", or only some of a comment's lines with arrows are indented.
"""
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.S)
ARROW = re.compile(r"--[\w ,]*-->|-->")


def damaged(comment):
    lines = [re.sub(r"^\s*/?\*+ ?", "", line).rstrip() for line in comment.split("\n")]
    arrows = [line for line in lines if ARROW.search(line)]
    for line in lines:
        if line.startswith("| ") and not line.endswith("|"):
            yield line
    if any(line.startswith("  ") for line in arrows):
        yield from (line for line in arrows if not line.startswith("  "))


def main():
    root = pathlib.Path(sys.argv[1])
    bad = []
    n_files = 0
    for folder in ("src", "include", "test", "bench", "examples"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            n_files += 1
            for comment in COMMENT.findall(path.read_text(errors="replace")):
                bad += [f"{path}: the diagram is damaged at: {line}" for line in damaged(comment)]
    for line in bad:
        print(line)
    if n_files == 0:
        print("no files found: the check looks at the wrong place")
    return 1 if bad or n_files == 0 else 0


sys.exit(main())
