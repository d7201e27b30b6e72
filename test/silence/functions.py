#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the names of all functions of libtnk that return a promise, as an array.

usage: functions.py INCLUDE_DIR OUTPUT
"""
import pathlib
import re
import sys

DECLARATION = re.compile(r"^TNK_API tnk_promise_t \*\s*(tnk_\w+)\s*\(", re.M)

names = set()
for path in pathlib.Path(sys.argv[1], "tnk").glob("*.h"):
    if path.name not in ("tokenizers.h", "chat.h", "gateway.h"):
        names.update(DECLARATION.findall(path.read_text()))
if len(names) < 40:
    sys.exit("hardly a function found: the headers are written otherwise now")
lines = "".join(f'    "{name}",\n' for name in sorted(names))
pathlib.Path(sys.argv[2]).write_text(f"static const char *const functions[] = {{\n{lines}}};\n")
