#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk beside the official client: the same calls to the same stub, both in turn
in one run; medians and ratios, and in the end a table for the README here.

    bench/compare.py BUILD_DIR PYTHON

PYTHON is an interpreter that has the official client (`pip install tinker`).
With `-` in its place tnk is measured alone.
"""
import argparse
import json
import os
import sys
import time

from chat_lab import GROUPS as CHAT
from groups import GROUPS as BASIC
from lab import Lab, line, markdown
from numbers_of_rl import GROUPS as NUMBERS
from rest import GROUPS as REST
from train_lab import GROUPS as TRAIN
from wire import GROUPS as WIRE

GROUPS = {**BASIC, **WIRE, **REST, **NUMBERS, **CHAT, **TRAIN}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("python")
    parser.add_argument("--only", metavar="GROUP,...", help="of " + ", ".join(GROUPS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only shows that everything works")
    parser.add_argument("--json", metavar="FILE", help="write all numbers there")
    args = parser.parse_args()
    args.groups = args.only.split(",") if args.only else list(GROUPS)
    for name in args.groups:
        if name not in GROUPS:
            parser.error("there is no group " + name)
    return args


def main():
    args = arguments()
    lab = Lab(args.build, None if args.python == "-" else args.python, 1 if args.quick else args.rounds, args.quick)
    head = "%s, official client %s, %d cores, medians of %d" % (
        time.strftime("%Y-%m-%d"), lab.version or "not measured", os.cpu_count(), lab.rounds)
    print("%s; load %.1f" % (head, os.getloadavg()[0]))
    print(line("", "tnk", "official", "better by", "limit", "target"))
    for name in args.groups:
        began = time.monotonic()
        print("\n== %s" % name, flush=True)
        GROUPS[name](lab)
        print("(%.0f s)" % (time.monotonic() - began), flush=True)
    print("\n%s.\n\n%s" % (head, markdown(lab.rows)))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"head": head, "rows": lab.rows}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
