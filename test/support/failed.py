#!/usr/bin/env python3
"""Names the test programs that failed in a run of meson, when they are few.

usage: failed.py TESTLOG_JSON
"""
import json
import sys

FEW = 5

with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
    rows = [json.loads(line) for line in log]
failed = [row["name"].rpartition(" / ")[2] for row in rows
          if row["result"] in ("FAIL", "ERROR", "TIMEOUT", "INTERRUPT")]
if len(failed) <= FEW:
    print(" ".join(failed))
