#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which codes each call may reject with, as its comment says, for tests.

usage: gen_codes.py INCLUDE_DIR OUTPUT

The output has a row {"name", code} for each code, where `name` is how sentences
of the operation begin: the function's without what says on which object.
"""
import pathlib
import re
import sys

GROUPS = ("Caller", "Transport", "Service", "Operation")
FUNCTION = re.compile(
    r"/\*\*((?:(?!\*/).)*)\*/\s*TNK_API tnk_promise_t \*\s*"
    r"tnk_(?:(?:service|training|sampling|rest|weights)_|(?=ledger_))(\w+)\(",
    re.S)
NAMES = {"health": "healthz"}


def main():
    include = pathlib.Path(sys.argv[1])
    errors = (include / "error.h").read_text()
    groups = {name: re.findall(r"TNK_E\w+", re.search(
        rf"^ \* {name} (.*?):", errors, re.S | re.M)[1]) for name in GROUPS}
    rows = []
    for path in sorted(include.glob("*.h")):
        for comment, name in FUNCTION.findall(path.read_text()):
            listed = comment.split("Rejects with:")[1].split("Thread:")[0]
            codes = set(re.findall(r"TNK_E\w+", listed))
            for group, members in groups.items():
                if re.search(rf"\b{group}\b", listed):
                    codes |= set(members)
            rows += [f'{{"{NAMES.get(name, name)}", {code}}},'
                     for code in sorted(codes)]
    pathlib.Path(sys.argv[2]).write_text("\n".join(rows) + "\n")


main()
