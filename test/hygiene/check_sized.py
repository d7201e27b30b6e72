#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every public struct that begins with its size is a row of the table.

usage: check_sized.py ROOT

The table is in src/lib/base/options.h; loading, tests and assertions come from it.
Also: the row says whether there is a member `reserved`, the INIT that it names
exists, `size` stands at the beginning of a struct only, its choices are in the
list of those, and the program that runs old against new, test/abi/caller.c, uses
the struct.
"""
import pathlib
import re
import sys

STRUCT = re.compile(r"typedef struct(?:\s+\w+)? \{\n(.*?)\n\} (\w+);", re.S)
ROW = re.compile(r"X\((tnk_\w+),\s*(\w+),\s*\w+,\s*\d+,\s*\w+,\s*(YES|NO)\)")
CHOICE = re.compile(r"X\((tnk_\w+),\s*(\w+)\)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def structs(include):
    """Yield (type, list of its members' declarations, header's text)."""
    for path in sorted(include.rglob("*.h")):
        text = COMMENT.sub("", path.read_text())
        for body, name in STRUCT.findall(text):
            yield name, [m.strip() for m in body.split(";") if m.strip()], text


def main():
    root = pathlib.Path(sys.argv[1])
    table = (root / "src/lib/base/options.h").read_text().replace("\\\n", " ")
    caller = (root / "test/abi/caller.c").read_text()
    choices = set(CHOICE.findall(table))
    rows = {name: (init, reserved) for name, init, reserved in
            ROW.findall(table)}
    bad = []
    sized = set()
    for name, members, text in structs(root / "include"):
        is_sized = members[0] == "size_t size"
        if not is_sized:
            if "size_t size" in members:
                bad.append(f"{name}: size is not its first member")
            continue
        sized.add(name)
        if name not in rows:
            bad.append(f"{name}: no row in src/lib/base/options.h")
            continue
        init, reserved = rows[name]
        has = any(re.search(r"\breserved$", m) for m in members)
        if has != (reserved == "YES"):
            bad.append(f"{name}: its row says {reserved} of `reserved`")
        bad += [f"{name}: {member} is not in the list of choices" for member in
                (m.split()[-1] for m in members if m.startswith("tnk_choice_t"))
                if (name, member) not in choices]
        if f"MAKE({name}," not in caller:
            bad.append(f"{name}: test/abi/caller.c does not use it")
        if not re.search(rf"#define {init}\b", text):
            bad.append(f"{name}: its header does not define {init}")
    bad += [f"{name}: a row, but no public struct" for name in
            sorted(set(rows) - sized)]
    for line in bad:
        print(line)
    if not rows or not sized:
        print("no table or no struct found: the check looks at the wrong place")
    return 1 if bad or not rows or not sized else 0


sys.exit(main())
