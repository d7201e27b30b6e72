#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files encrypted with age: ours are opened by another library, its by ours.

    python3 age.py --tool BUILD/test/interop/age_tool [--venv FOLDER]

The other one is PyPI's pyrage, over the Rust implementation. Skips where it is
not installed; with --venv it is put into that environment, which is made if it is
missing, unless PyPI is out of reach.
"""
import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
from own_venv import enter_or_skip, skip_all  # noqa: E402
from tap import check, plan  # noqa: E402

CHUNK = 65536
SIZES = (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 1_000_000)


def run(tool, *args, data):
    return subprocess.run([tool, *args], input=data, capture_output=True,
                          check=False, timeout=60)


def check_both_ways(tool, pyrage, identity):
    other = pyrage.x25519.Identity.generate()
    ours, theirs = str(identity.to_public()), str(other.to_public())
    for size in SIZES:
        data = os.urandom(size)
        sealed = run(tool, "seal", theirs, ours, data=data)
        check(sealed.returncode == 0 and
              pyrage.decrypt(sealed.stdout, [identity]) == data,
              f"{size} bytes that we encrypt are decrypted", sealed.stderr)
        sealed = pyrage.encrypt(data, [other.to_public(),
                                       identity.to_public()])
        opened = run(tool, "open", str(identity), data=sealed)
        check(opened.returncode == 0 and opened.stdout == data,
              f"{size} bytes that are encrypted for us are decrypted",
              opened.stderr)


def check_refused(tool, pyrage, identity):
    """What pyrage refuses, the tool refuses, and gives nothing."""
    sealed = pyrage.encrypt(os.urandom(3 * CHUNK), [identity.to_public()])
    flipped = bytearray(sealed)
    flipped[-CHUNK] ^= 1
    other = pyrage.x25519.Identity.generate()
    for what, data, key in (
            ("a wrong key", sealed, other),
            ("a cut file", sealed[:-CHUNK - 16], identity),
            ("a file cut inside", sealed[:-100], identity),
            ("a flipped bit", bytes(flipped), identity),
            ("bytes behind the end", sealed + b"x", identity)):
        try:
            pyrage.decrypt(data, [key])
            theirs = "decrypted"
        except pyrage.DecryptError:
            theirs = "refused"
        opened = run(tool, "open", str(key), data=data)
        check(theirs == "refused" and opened.returncode == 1 and
              not opened.stdout and opened.stderr,
              f"{what} is refused by both", (theirs, opened))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--venv", type=pathlib.Path)
    args = parser.parse_args()
    tool = args.tool
    if args.venv:
        enter_or_skip(args.venv, "pyrage")
    try:
        import pyrage
    except ImportError:
        skip_all("pyrage is not installed")
    identity = pyrage.x25519.Identity.generate()
    check_both_ways(tool, pyrage, identity)
    check_refused(tool, pyrage, identity)
    plan()


main()
