#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each guide is in the index, shows its program unchanged, and names only what exists.

usage: check_guides.py ROOT

Approximates "a guide can be followed": its program is the one that the tests
compile and run, its links lead somewhere, its functions are in the headers, and
the table of errors has each code of error.h with its text.
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
NAME = re.compile(r"\b(?:tnk_|TNK_)\w+")
CODE = re.compile(r"XX\((\w+), (-\d+), \"([^\"]*)\"\)")
# Variables of the environment, and words that begin like a name.
NO_NAMES = {"TNK_CERT_FILE", "TNK_KEY_FILE", "TNK_HTTP_VERSION", "TNK_DUMP_FILE",
            "TNK_GATEWAY_ADMIN_KEY", "TNK_GATEWAY_URL", "TNK_RL_TASK", "TNK_RL_STEP",
            "TNK_RL_GROUP", "TNK_RL_MEMBER", "TNK_RL_SEED"}


def check_guide(path, headers):
    text = path.read_text()
    blocks = re.findall(r"```(?:c|cpp)\n(.*?)```", text, re.S)
    for program in (path.with_suffix(".c"), path.with_suffix(".cc")):
        if program.exists() and program.read_text() not in blocks:
            yield f"{path}: does not show {program.name} as it is"
    for link in LINK.findall(text):
        if not (path.parent / link).exists():
            yield f"{path}: the link {link} leads nowhere"
    for name in sorted(set(NAME.findall(text)) - NO_NAMES):
        if not re.search(rf"\b{name}\b", headers) and \
           not re.search(rf"\bXX\({name.removeprefix('TNK_')},", headers):
            yield f"{path}: {name} is in no public header"


def check_errors(root, text):
    header = (root / "include/tnk/error.h").read_text()
    for name, _, meaning in CODE.findall(header):
        if f"| `TNK_{name}` | {meaning} |" not in text:
            yield f"errors.md: no row for TNK_{name} with \"{meaning}\""


def main():
    root = pathlib.Path(sys.argv[1])
    guides = root / "examples/guides"
    headers = "".join(p.read_text() for p in (root / "include").rglob("*.h"))
    index = (guides / "README.md").read_text()
    bad = []
    n_guides = 0
    for path in sorted(guides.glob("*.md")):
        n_guides += 1
        bad += check_guide(path, headers)
        if path.name != "README.md" and f"]({path.name})" not in index:
            bad.append(f"{path}: is not in the index")
    for program in sorted([*guides.glob("*.c"), *guides.glob("*.cc")]):
        if not program.with_suffix(".md").exists():
            bad.append(f"{program}: has no guide")
    bad += check_errors(root, (guides / "errors.md").read_text())
    for line in bad:
        print(line)
    if n_guides < 2:
        print("no guide found: the check looks at the wrong place")
    return 1 if bad or n_guides < 2 else 0


sys.exit(main())
