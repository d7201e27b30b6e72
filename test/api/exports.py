#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write every function that the public headers of libtnk export as an X-macro.

usage: exports.py INCLUDE_DIR OUTPUT
"""
import pathlib
import re
import sys

DECLARATION = re.compile(r"^TNK_API\b[^;(]*?\b(tnk_\w+)\s*\(", re.M)

names = set()
for path in pathlib.Path(sys.argv[1], "tnk").glob("*.h"):
    if path.name not in ("tokenizers.h", "chat.h", "gateway.h"):
        names.update(DECLARATION.findall(path.read_text()))
if len(names) < 50:
    sys.exit("hardly a function found: the headers are written otherwise now")
lines = "".join(f"  X({name}) \\\n" for name in sorted(names))
pathlib.Path(sys.argv[2]).write_text(f"#define TNK_EXPORTS(X) \\\n{lines}\n")
