#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a function that returns a code returns is in the list above it.

usage: check_codes.py ROOT

For each exported function that returns an int, the codes that its definition
and the static functions of the same file that it calls name are collected; each
must stand in its comment, or the comment refers to another ("As ...", "as
tnk_...()"). Codes that come from other files are not seen. Of promises
check_docs.py and the scripted tests know (test/support/gen_codes.py).
"""
import pathlib
import re
import sys

EXPORT = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*TNK_API int\s+(tnk_\w+)\(", re.S)
DEFINITION = re.compile(r"^(?:static )?[\w ]+[ *](\w+)\([^;{]*\) \{\n(.*?)^\}", re.S | re.M)
CODE = re.compile(r"\bTNK_E[A-Z]+\b")
# The code is compared with, or given to somebody else.
OTHER_USE = re.compile(r"[=!]= TNK_E[A-Z]+|TNK_E[A-Z]+ \?|case TNK_E[A-Z]+|"
                       r"tnk__error_\w+\([^;]*?TNK_E[A-Z]+")


def definitions(path):
    """Names of functions, and for each what it may return and whom it calls."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    found = {}
    for name, body in DEFINITION.findall(text):
        found[name] = (set(CODE.findall(OTHER_USE.sub("", body))),
                       set(re.findall(r"\b(\w+)\(", body)))
    return found


def codes_of(name, found, seen):
    if name in seen or name not in found:
        return set()
    seen.add(name)
    codes, calls = found[name]
    return codes.union(*(codes_of(c, found, seen) for c in calls))


def main():
    root = pathlib.Path(sys.argv[1])
    listed = {}
    for path in (root / "include").rglob("*.h"):
        listed.update({name: re.sub(r"\n \*", "", comment)
                       for comment, name in EXPORT.findall(path.read_text())})
    bad = []
    n_checked = 0
    for path in sorted((root / "src").rglob("*.c")):
        found = definitions(path)
        for name in sorted(set(found) & set(listed)):
            n_checked += 1
            if re.search(r"\b[Aa]s tnk_\w+\(\)", listed[name]):
                continue
            missing = codes_of(name, found, set()) - set(CODE.findall(listed[name]))
            bad += [f"{path}: {name}() may return {code}, which its header does "
                    "not say" for code in sorted(missing)]
    for line in bad:
        print(line)
    if n_checked == 0:
        print("no function found: the check looks at the wrong place")
    print(f"{n_checked} functions")
    return 1 if bad or n_checked == 0 else 0


sys.exit(main())
