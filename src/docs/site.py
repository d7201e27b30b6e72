#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run Doxygen for the site, and check that it loads nothing from elsewhere.

usage: site.py DOXYFILE OUTPUT_DIR
"""
import pathlib
import re
import shutil
import subprocess
import sys

LOADS = re.compile(r"""<(?:script|img|iframe)\b[^>]*\bsrc="(?:https?:)?//|"""
                   r"""<link\b[^>]*\bhref="(?:https?:)?//|url\(['"]?(?:https?:)?//""")


def main():
    doxyfile, out = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    subprocess.run(["doxygen", doxyfile], check=True)
    bad = [path for path in out.rglob("*") if path.suffix in (".html", ".css", ".js")
           and LOADS.search(path.read_text(errors="replace"))]
    for path in bad:
        print(f"{path}: loads something from another server", file=sys.stderr)
    return 1 if bad else 0


sys.exit(main())
