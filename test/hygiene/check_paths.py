#!/usr/bin/env python3
"""Files that comments and READMEs name are there.

usage: check_paths.py ROOT

Looks at comments of src, include, bench and examples, and at the READMEs beside
them, for paths that begin with a folder of src: "task/call/auth.h", or without
an ending in a README, `task/call/auth`.
"""
import pathlib
import re
import sys

ENDINGS = (".c", ".h", ".cc")
PLACES = ("src", "include", "bench", "examples")


def is_there(src, path):
    """Whether a path, with or without its ending, names a file or folder."""
    whole = src / path
    return whole.exists() or \
        any(whole.with_name(whole.name + e).exists() for e in ENDINGS)


def main():
    root = pathlib.Path(sys.argv[1])
    src = root / "src"
    folders = "|".join(p.name for p in src.iterdir() if p.is_dir())
    path = re.compile(rf"(?<![\w/.\-<])(?:src/)?((?:{folders})/[\w/]*\w"
                      rf"(?:\.(?:c|h|cc))?)(?![\w/*]|\.\w)")
    bad = n = 0
    for file in sorted(f for p in PLACES for f in (root / p).rglob("*")):
        if file.suffix not in ENDINGS and file.name != "README.md":
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            # The compiler sees to those of #include.
            if line.startswith("#"):
                continue
            for found in path.findall(line):
                if file.suffix in ENDINGS and not found.endswith(ENDINGS):
                    continue
                n += 1
                if not is_there(src, found):
                    print(f"{file.relative_to(root)}:{number}: "
                          f"there is no src/{found}")
                    bad = 1
    if n == 0:
        print("no path found: the check looks at the wrong place")
    return 1 if bad or n == 0 else 0


sys.exit(main())
