#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package tnk for Python and the official client: the same programs, in turn in one
run, against the same stub. Prints a table for README.md.

    bench/python.py BUILD_DIR PYTHON PACKAGE [--rounds N] [--quick]

PYTHON is an interpreter with the official client and numpy. PACKAGE is a folder with the
package tnk, such as an unpacked wheel. The table has medians.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
IMPORT = """
import json, resource, sys, time
def rss():
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS:")) / 1024
before, used = rss(), time.process_time()
import {0}
print(json.dumps({{"import_ms": (time.process_time() - used) * 1e3, "import_mib": rss() - before}}))
"""


class Lab:
    def __init__(self, args):
        self.args = args
        self.env = {**os.environ, "no_proxy": "*", "TINKER_API_KEY": "tml-local", "PYTHONPATH": ""}

    def run(self, is_tnk, *program):
        head = [self.args.python]
        if is_tnk and program[0] != "-c":
            head += ["-m", "tnk", "run"]
        env = {**self.env, "PYTHONPATH": f"{self.args.package if is_tnk else ''}:{HERE}"}
        if "arrays" in program:
            env["TNK_TYPES"] = "own"
        ran = subprocess.run([*head, *map(str, program)], env=env, capture_output=True, text=True, check=True, cwd=HERE)
        return json.loads(ran.stdout.splitlines()[-1])

    def medians(self, program, names):
        """For each name (official client, tnk)."""
        runs = [[self.run(is_tnk, *program(is_tnk)) for is_tnk in (False, True)] for _ in range(self.args.rounds)]
        return {name: [statistics.median(pair[i][name] for pair in runs) for i in (0, 1)] for name in names}


def rows(lab):
    n = 2000 if lab.args.quick else 10000
    samples = [HERE / "official.py", "--in-flight", 1000, "--stall", 1, "--samples"]
    passes = [HERE / "official_passes.py", 256, 4096, "cross_entropy"]
    for what, program, names in [
        ("threads", lambda t: [HERE / "official_threads.py", n if t else n // 5, 1000], ["per_cpu_s"]),
        ("asyncio", lambda t: [*samples, n if t else n // 5],
         ["per_cpu_s", "send_stall_cpu_ms", "send_stall_own_ms", "stall_cpu_ms", "stall_own_ms"]),
        ("a pass of 1 M tokens, lists", lambda t: passes, ["cpu_ms"]),
        ("a pass of 1 M tokens, arrays", lambda t: [*passes, *["arrays"] * t], ["cpu_ms"]),
        ("a pass of 1 M tokens, lists, in asyncio", lambda t: [*passes, "stall"], ["stall_cpu_ms", "stall_own_ms"]),
        ("import", lambda t: ["-c", IMPORT.format("tnk" if t else "tinker")], ["import_ms", "import_mib"]),
    ]:
        for name, (official, tnk) in lab.medians(program, names).items():
            yield what, name, official, tnk, tnk / official if name == "per_cpu_s" else official / max(tnk, 0.01)


LABELS = {"per_cpu_s": "samples per CPU second, 1,000 in flight",
          "send_stall_cpu_ms": "longest stall of the loop while they start, CPU ms of all threads",
          "send_stall_own_ms": "the same, CPU ms of the loop's thread",
          "stall_cpu_ms": "longest stall of the loop, CPU ms of all threads",
          "stall_own_ms": "the same, CPU ms of the loop's thread",
          "cpu_ms": "CPU ms", "import_ms": "CPU ms", "import_mib": "MiB"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("python")
    parser.add_argument("package", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    args = parser.parse_args()
    args.package = args.package.resolve()
    lab = Lab(args)
    with subprocess.Popen([args.build / "src/tools/tnk/tnk", "local", "--port", "0", "--stub", "--exit-with-stdin"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        lab.env["TINKER_BASE_URL"] = re.search(r"listening on (\S+)", server.stdout.readline())[1]
        print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}, medians of {args.rounds}\n")
        print("| | official client | tnk | better by |\n|---|---:|---:|---:|")
        for what, name, official, tnk, factor in rows(lab):
            print(f"| {what}: {LABELS[name]} | {official:,.1f} | {tnk:,.1f} | {factor:.{0 if factor >= 2 else 1}f}x |", flush=True)
        server.stdin.close()


main()
