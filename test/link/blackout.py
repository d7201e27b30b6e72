#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A black-out in real time: how long after its end the last operation settles.

usage: blackout.py BUILD_DIR [SECONDS]

2,000 samples whose results take a second, and a training pipeline of ten passes
with a step behind each, are in flight when the wire between `tnk local --stub` and
the client goes dark: nothing passes, or all connections are reset and further ones
refused. SECONDS later (60) it is whole again. Prints a row of the table in the
README for each way. Ends with 1 when an operation has failed, or the last one
settles more than five seconds after the end.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

BUILD = pathlib.Path(sys.argv[1])
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
WAYS = {"silent": ("pause", "go"), "refused": ("away", "back")}
ENV = {k: v for k, v in os.environ.items() if not k.startswith("TINKER_")}
ENV.update(no_proxy="*", TINKER_API_KEY="tml-local")


def start(*command, **env):
    return subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True, env={**ENV, **env})


def tell(link, words):
    link.stdin.write(words + "\n")
    link.stdin.flush()
    return json.loads(link.stdout.readline())


def live_through(way):
    dark, light = WAYS[way]
    server = start(BUILD / "src/tools/tnk/tnk", "local", "--stub", "--port", "0",
                   "--latency-ms", "1000", "--exit-with-stdin")
    port = server.stdout.readline().strip().rsplit(":", 1)[1].rstrip("/")
    link = start(BUILD / "test/link/link", port)
    url = link.stdout.readline().strip()
    load = start(BUILD / "test/interop/load", "--samples", 2000, "--in-flight",
                 2000, "--steps", 10, "--depth", 10, TINKER_BASE_URL=url)
    load.stdout.readline()
    time.sleep(0.4)
    before = tell(link, dark)
    time.sleep(SECONDS)
    tell(link, light)
    began = time.monotonic()
    result = json.loads(load.stdout.readline())
    took = time.monotonic() - began
    for child in (load, link, server):
        child.stdin.close()
        child.wait(60)
    print(f"| {way} | {SECONDS:.0f} s | {before['open']} | {result['samples']} + "
          f"{2 * result['steps']} | {result['failed']} | {result['retries']} | "
          f"{took:.1f} s |", flush=True)
    if result["failed"]:
        print(result["text"], file=sys.stderr)
    return result["failed"] == 0 and took <= 5


def main():
    print("| the wire is | for | connections | settled | failed | repeats | "
          "after its end |")
    print("|---|---|---|---|---|---|---|")
    return 0 if all([live_through(way) for way in WAYS]) else 1


if __name__ == "__main__":
    sys.exit(main())
