#!/usr/bin/env python3
"""tnk beside the official client: the same calls to the same stub, alternating
in one run; medians and ratios.

    bench/compare.py BUILD_DIR PYTHON [--rounds N] [--quick]

PYTHON is an interpreter that has the official client (`pip install tinker`).
With `-` in its place tnk is measured alone. --quick only shows that everything
works.
"""
import argparse
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LUA = """wrk.method="POST"
wrk.headers["Content-Type"]="application/json"
wrk.headers["X-API-Key"]="tml-bench"
wrk.body='{"num_samples":1,"prompt":{"chunks":[{"tokens":[%s],"type":"encoded_text"}]},"max_tokens":128}'
""" % ",".join(str(32 + i % 90) for i in range(128))


class Stub:
    """`tnk local --stub` on a port of its own."""

    def __init__(self, build, *args):
        self.process = subprocess.Popen(
            [build + "/src/cli/tnk", "local", "--stub", "--port", "0", "--exit-with-stdin", *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def environment(url):
    return {**os.environ, "TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-bench",
            "TINKER_TELEMETRY": "0", "PYTHONWARNINGS": "ignore"}


def run(command, url):
    result = subprocess.run(command, env=environment(url), capture_output=True, text=True, timeout=300)
    if result.returncode != 0:
        sys.exit("%s\n%s%s" % (" ".join(command), result.stdout, result.stderr))
    return json.loads(result.stdout.strip().splitlines()[-1])


def rounds(commands, url, n):
    """Alternating; the median of every number that all of them print."""
    results = {name: [] for name in commands}
    for _ in range(n):
        for name, command in commands.items():
            results[name].append(run(command, url))
    return {name: {key: statistics.median(r[key] for r in got) for key in got[0]
                   if isinstance(got[0][key], (int, float))}
            for name, got in results.items()}


def show(title, results, keys):
    print("\n" + title)
    print("%-28s" % "" + "".join("%14s" % name for name in results) + "%10s" % "better by")
    for key, label in keys.items():
        values = [r.get(key) for r in results.values()]
        line = "%-28s" % label + "".join("%14s" % ("-" if v is None else "%.5g" % v) for v in values)
        if len(values) == 2 and all(values):
            ours, theirs = values
            line += "%9.1fx" % (ours / theirs if key.startswith("per_") else theirs / ours)
        print(line)


def first_request(command):
    """Seconds from the start of a process to its first request."""
    listener = socket.create_server(("127.0.0.1", 0))
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment("http://127.0.0.1:%d" % listener.getsockname()[1]),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    connection, _ = listener.accept()
    connection.recv(1)
    took = time.perf_counter() - start
    process.kill()
    process.wait()
    connection.close()
    listener.close()
    return {"ms": took * 1000}


def raw_limit(url):
    """Two-request samples a CPU-second that a load generator makes."""
    if shutil.which("wrk") is None:
        return None
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(["wrk", "-t1", "-c64", "-d2", "-s", "/dev/stdin", url + "/api/v1/asample"],
                            input=LUA, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    n = [int(line.split()[0]) for line in result.stdout.splitlines() if " requests in " in line]
    return n[0] / 2 / used if n else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    n = 1 if args.quick else args.rounds

    def both(ours, theirs):
        commands = {"tnk": [args.build + "/bench/" + ours[0], *ours[1:]]}
        if args.python != "-":
            commands["official"] = [args.python, os.path.join(HERE, theirs[0]), *theirs[1:]]
        return commands

    if args.python != "-":
        version = subprocess.run([args.python, "-c", "import tinker; print(tinker.__version__)"],
                                 capture_output=True, text=True).stdout.strip()
        print("official client %s, %s, %d rounds" % (version, time.strftime("%Y-%m-%d"), n))
    per_second = {"per_cpu_s": "samples a CPU-second", "per_s": "samples a second", "stall_ms": "longest stall, ms"}
    with Stub(args.build) as stub:
        for in_flight in [10] if args.quick else [1, 10, 100, 1000, 2000]:
            few = str(max(200, 2 * in_flight) if not args.quick else 100)
            many = "20000" if not args.quick else "100"
            common = ["--in-flight", str(in_flight), "--prompt", "128", "--tokens", "128"]
            show("%d samples in flight" % in_flight,
                 rounds(both(["bench_samples", "--samples", many, *common],
                             ["official.py", "--samples", few, *common]), stub.url, n), per_second)
        limit = raw_limit(stub.url)
        if limit is not None:
            print("\nraw limit (wrk, the same submission): %d two-request samples a CPU-second" % limit)
        size = ["16", "64"] if args.quick else ["256", "4096"]
        for loss in ["cross_entropy", "importance_sampling"]:
            show("forward_backward of %s x %s tokens, %s" % (*size, loss),
                 rounds(both(["bench_passes", *size, loss], ["official_passes.py", *size, loss]), stub.url, n),
                 {"cpu_s": "CPU, s", "sent_s": "until sent, s", "peak_mib": "peak beyond the data, MiB",
                  "stall_ms": "longest stall, ms"})
    with Stub(args.build, "--latency-ms", "2000") as stub:
        for in_flight in [10] if args.quick else [1000]:
            common = ["--samples", str(in_flight), "--in-flight", str(in_flight), "--prompt", "128", "--tokens", "1"]
            show("%d samples held by the server" % in_flight,
                 rounds(both(["bench_samples", *common], ["official.py", *common]), stub.url, n),
                 {"kib_per_sample": "memory a sample, KiB"})
    show("process start to first request",
         {name: {"ms": statistics.median(first_request(command)["ms"] for _ in range(n))}
          for name, command in both(["bench_samples"], ["official.py"]).items()}, {"ms": "ms"})


if __name__ == "__main__":
    main()
