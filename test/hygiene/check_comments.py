#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Comments are where they matter: at states, and in every room.

usage: check_comments.py ROOT

A file with states (it, or the header of its name, has an enum whose name ends
in "state_t") says in comments what each of them is: each enumerator has a
comment behind it, or its word stands in one of the two files. At least 8 of 100
lines that are not blank have a comment there, and in each folder of the
library; the public headers count for src/lib/api, of which they are the reference.
"""
import os
import pathlib
import re
import sys

MIN_SHARE = 0.08
ROOMS = ("base", "policy", "usage", "wire", "observe", "rl", "io", "otlp", "client", "hosted", "store",
         "files", "ledger", "train", "api")
LICENSE = re.compile(r"^/\* SPDX.*\n")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
STATES = re.compile(r"typedef enum \{([^}]*)\} (\w*state_t);")


def count(text):
    """Lines with a comment, and lines that are not blank."""
    n_comments = 0
    inside = False
    for line in text.splitlines():
        line = line.strip()
        n_comments += inside or "/*" in line or line.startswith("//")
        rest = line if inside else line.partition("/*")[2]
        if inside or "/*" in line:
            inside = "*/" not in rest
    return n_comments, sum(bool(line.strip()) for line in text.splitlines())


def share(texts):
    # The line with the license explains nothing.
    counts = [count(LICENSE.sub("", text)) for text in texts]
    return sum(c for c, _ in counts) / max(1, sum(n for _, n in counts))


def unexplained(text):
    """Enumerators of the states in a text that no comment tells of."""
    words = " ".join(COMMENT.findall(text)).lower()
    for body, _ in STATES.findall(text):
        names = re.findall(r"^\s*(\w+)", COMMENT.sub("", body).replace(",", "\n"), re.M)
        prefix = len(os.path.commonprefix(names)) if len(names) > 1 else 0
        for name in names:
            word = name[prefix:].lower().replace("_", " ")
            if not re.search(rf"{name}\b[^/\n]*/\*", body) and \
                    not re.search(rf"\b{word}", words):
                yield name


def check_states(src):
    bad = []
    n_files = 0
    for path in sorted(src.rglob("*.c")):
        header = path.with_suffix(".h")
        text = path.read_text() + (header.read_text() if header.exists() else "")
        if not STATES.search(text):
            continue
        n_files += 1
        bad += [f"{path}: no comment says what {name} is" for name in unexplained(text)]
        if share([text]) < MIN_SHARE:
            bad.append(f"{path}: has states, and comments on {share([text]):.0%} "
                       f"of its lines, at least {MIN_SHARE:.0%}")
    if n_files == 0:
        bad.append("no file with states found: the check looks at the wrong place")
    return bad


def check_rooms(root):
    bad = []
    for room in ROOMS:
        folders = [root / "src/lib" / room] + [root / "include"] * (room == "api")
        texts = [path.read_text() for folder in folders
                 for path in folder.rglob("*") if path.suffix in (".c", ".h")]
        if not texts:
            continue  # that there is no such folder is no matter of comments
        got = share(texts)
        print(f"src/lib/{room}: {got:.1%}")
        if got < MIN_SHARE:
            bad.append(f"src/lib/{room}: comments on {got:.1%} of its lines, "
                       f"at least {MIN_SHARE:.0%}")
    return bad


def main():
    root = pathlib.Path(sys.argv[1])
    bad = check_rooms(root) + check_states(root / "src")
    for line in bad:
        print(line)
    return 1 if bad else 0


sys.exit(main())
