# SPDX-License-Identifier: MIT
"""The official client doing what bench_records does; prints the same JSON."""
import json
import os
import sys
import time

import tinker

import official_measure as measure


def read(page):
    return sum(len(c.tinker_path) + (c.size_bytes or 0) + int(c.time.timestamp() * 1e6)
               + len(c.user_metadata or {}) for c in page.checkpoints)


def main():
    n, limit = int(sys.argv[1]), int(sys.argv[2])
    client = tinker.RestClient()

    def ask():
        return read(client.list_user_checkpoints(limit=limit).result())

    total = ask()
    measure.reset_peak()
    used, began = measure.cpu(), time.perf_counter()
    for _ in range(n):
        total += ask()
    print(json.dumps({"cpu_ms": (measure.cpu() - used) * 1e3 / n,
                      "wall_ms": (time.perf_counter() - began) * 1e3 / n,
                      "peak_kib": measure.status_kib("VmHWM:"), "sum": total}), flush=True)
    os._exit(0)


main()
