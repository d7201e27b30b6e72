#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The README's program is examples/hello.c, short, and the names it uses exist.
Its C blocks, and those of the guides, compile without changes.

usage: check_readme.py ROOT CC ...
"""
import pathlib
import re
import subprocess
import sys

MAX_LINES = 38  # of the program, blank ones not counted


def uncompiled(root, path, compiler):
    for block in re.findall(r"```c\n(.*?)```", path.read_text(), re.S):
        got = subprocess.run([*compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                              "-I", root / "include", "-x", "c", "-"],
                             input=block, text=True, capture_output=True)
        if got.returncode != 0:
            yield got.stderr


def main():
    root = pathlib.Path(sys.argv[1])
    readme = (root / "README.md").read_text()
    headers = "".join(p.read_text() for p in (root / "include").rglob("*.h"))
    bad = 0
    programs = [block for block in re.findall(r"```c\n(.*?)```", readme, re.S)
                if "int main" in block]
    if programs != [(root / "examples/hello.c").read_text()]:
        print("README.md: the program differs from examples/hello.c")
        bad = 1
    if sum(bool(line.strip()) for line in "".join(programs).splitlines()) > MAX_LINES:
        print(f"README.md: the program has more than {MAX_LINES} lines")
        bad = 1
    for path in (root / "README.md", *sorted((root / "examples/guides").glob("*.md"))):
        for why in uncompiled(root, path, sys.argv[2:]):
            print(f"{path}: a block does not compile:\n{why}")
            bad = 1
    for name in sorted(set(re.findall(r"\b(?:tnk_|TNK_)\w+", readme))):
        if not re.search(rf"\b{name}\b", headers) and \
           not re.search(rf"\bXX\({name.removeprefix('TNK_')},", headers):
            print(f"README.md: {name} is in no public header")
            bad = 1
    for path in sorted(set(re.findall(r"\b(?:examples|test|src)/[\w./]+\w", readme))):
        if not (root / path).exists():
            print(f"README.md: {path} does not exist")
            bad = 1
    return bad


sys.exit(main())
