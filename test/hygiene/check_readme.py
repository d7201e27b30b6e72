#!/usr/bin/env python3
"""The README's program is examples/hello.c, short, and the names it uses exist.
Each of its blocks in C compiles as it stands.

usage: check_readme.py ROOT CC ...
"""
import pathlib
import re
import subprocess
import sys

MAX_LINES = 38  # of the program, blank ones not counted


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
    for block in re.findall(r"```c\n(.*?)```", readme, re.S):
        got = subprocess.run([*sys.argv[2:], "-std=gnu11", "-Wall", "-Wextra",
                              "-Werror", "-fsyntax-only", "-I", root / "include",
                              "-x", "c", "-"], input=block, text=True,
                             capture_output=True)
        if got.returncode != 0:
            print(f"README.md: a block does not compile:\n{got.stderr}")
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
