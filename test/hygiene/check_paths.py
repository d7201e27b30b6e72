#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that comments and READMEs name are there.

usage: check_paths.py ROOT

Looks at comments of src, include, bench and examples, and at the READMEs beside
them, for paths that begin with a folder of src: "lib/client/call/auth.h", or without
an ending in a README, `task/call/auth`. Of a bare name in a comment, "auth.h",
there must be some file.
"""
import pathlib
import re
import sys

ENDINGS = (".c", ".h", ".cc")
PLACES = ("src", "include", "bench", "examples")
NAME = re.compile(r"""(?<![\w/.*<>"-])([a-z]\w*\.(?:c|h|cc))(?![\w(/=-]|\.\w)""")


def is_there(src, path):
    """Whether a path, with or without its ending, names a file or folder."""
    whole = src / path
    return whole.exists() or \
        any(whole.with_name(whole.name + e).exists() for e in ENDINGS)


def names_in(line, path, is_code):
    """The paths that a line names, and whether each is a bare name."""
    for found in path.findall(line):
        # Without an ending, code may mean anything.
        if not is_code or found.endswith(ENDINGS):
            yield found, False
    if is_code and re.match(r"\s*/?\*|.*/\*", line):
        yield from ((found, True) for found in NAME.findall(line))


def main():
    root = pathlib.Path(sys.argv[1])
    src = root / "src"
    folders = "|".join(p.name for p in src.iterdir() if p.is_dir())
    path = re.compile(rf"(?<![\w/.\-<])(?:src/)?((?:{folders})/[\w/]*\w"
                      rf"(?:\.(?:c|h|cc))?)(?![\w/*]|\.\w)")
    files = sorted(f for p in PLACES for f in (root / p).rglob("*"))
    known = {f.name for f in files} | {f.name for f in root.glob("test/**/*.[ch]")}
    bad = n = 0
    for file in files:
        is_code = file.suffix in ENDINGS
        if not is_code and file.name != "README.md":
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            # The compiler sees to those of #include.
            if line.startswith("#"):
                continue
            for found, is_bare in names_in(line, path, is_code):
                n += 1
                if found not in known if is_bare else not is_there(src, found):
                    print(f"{file.relative_to(root)}:{number}: there is no "
                          f"{'file ' if is_bare else 'src/'}{found}")
                    bad = 1
    if n == 0:
        print("no path found: the check looks at the wrong place")
    return 1 if bad or n == 0 else 0


sys.exit(main())
