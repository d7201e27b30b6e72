#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each exported function has a man page, and groff shows each page without a warning.

usage: check_man.py ROOT

Approximates "man tnk_then works". Without groff only the first half is checked.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def warnings(pages):
    got = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", *pages],
                         capture_output=True, text=True)
    return got.stderr


def main():
    root = pathlib.Path(sys.argv[1])
    headers = sorted((root / "include/tnk").glob("*.h"))
    names = {name for path in headers for name in
             re.findall(r"^TNK_API [^;(]*?\b(tnk_\w+)\(", path.read_text(), re.M)}
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([root / "src/docs/man.py", "0", folder, *headers], check=True)
        pages = {path.stem: path for path in pathlib.Path(folder).glob("*.3")}
        bad += [f"no page for {name}()" for name in sorted(names - set(pages))]
        for name, path in sorted(pages.items()):
            text = path.read_text()
            for part in (".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION"):
                if part not in text:
                    bad.append(f"{name}: no {part[4:]}")
        if shutil.which("groff"):
            bad += warnings(sorted(pages.values())).splitlines()
        else:
            print("groff is not installed: pages were not formatted")
    for line in bad:
        print(line)
    print(f"{len(names)} functions, {len(pages)} pages")
    return 1 if bad or len(names) < 100 else 0


sys.exit(main())
