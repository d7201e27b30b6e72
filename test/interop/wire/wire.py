#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what the official client and this library send for the calls of
calls.json: see ../README.md.

    wire.py --tnk TNK --driver WIRE_TNK [--vectors FILE] [--python PYTHON]
            [--package FOLDER]

With --python (one that has the official client) both run, and --vectors is
where the official requests are written, if given. Without, the requests of
the official client come from --vectors. With --package, the folder with the
package tnk for Python, its calls are compared; --driver is not needed.
"""

import argparse
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import compare  # noqa: E402
import messages  # noqa: E402
from proxy import Recorder, Request  # noqa: E402
from run import Server  # noqa: E402

KEY = "tml-interop"
# Cases whose calls are made with the official command line.
COMMANDS = "weights_download"
PROTO = HERE.parents[2] / "src" / "lib" / "wire" / "message" / "proto" / "tinker.proto"


class Driver:
    """A process that makes the calls of a case when told its name. It may ask
    the recorder to wait for a request."""

    def __init__(self, command, recorder, path=""):
        self.recorder = recorder
        env = {k: v for k, v in os.environ.items() if not k.startswith("TINKER_")}
        env.update(TINKER_BASE_URL=recorder.url, TINKER_API_KEY=KEY, TINKER_TELEMETRY="0", NO_PROXY="*",
                   HF_HUB_OFFLINE="1", PYTHONPATH=path)
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, env=env)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def run(self, name):
        said = ""
        self.say(name)
        while True:
            line = self.process.stdout.readline()
            if not line:
                self.errors.seek(0)
                raise RuntimeError(f"the driver ended in {name}: {self.errors.read()[-2000:]}")
            asked = re.search(r"await:(\w+)$", line)
            if asked is None:
                return said + line.strip()
            said += line[:asked.start()]
            self.recorder.await_request(asked[1])
            self.say("arrived")

    def stop(self):
        self.process.stdin.close()
        return self.process.wait(30)


def record(args, command, cases, path=""):
    """case name -> (requests, what the driver says)"""
    server = Server(args.tnk, ["--flag", "use_pyqwest_transport=false"])
    recorder = Recorder(server.url)
    driver = Driver(command, recorder, path)
    out = {}
    try:
        for case in cases:
            recorder.begin(case)
            said = driver.run(case["name"])
            out[case["name"]] = (list(recorder.requests), said)
    finally:
        codes = driver.stop(), server.stop()
    # Also what a sanitizer finds at the end.
    if codes != (0, 0):
        driver.errors.seek(0)
        raise RuntimeError(f"{command[0]} and the server ended with {codes}: "
                           + driver.errors.read()[-3000:] + "\n".join(server.tail))
    return out


# ---- the official client's requests in a file ----------------------------------


def save(path, recorded, cases):
    """Each request once, and which of them a case has."""
    lines, places, lists = [], {}, []
    for case in cases:
        one = []
        for method, target, headers, body in compare.label_keys(recorded[case["name"]][0]):
            if target.endswith(compare.BACKGROUND):
                continue
            kept = {k: v for k, v in headers.items() if k in compare.COMPARED + compare.PRESENT}
            if "x-tinker-create-promise-roundtrip-time" in kept:
                kept["x-tinker-create-promise-roundtrip-time"] = "present"
            body = compare.name_ids(body)
            try:
                text = body.decode()
            except UnicodeDecodeError:
                text = ["base64", base64.b64encode(body).decode()]
            line = compare.name_ids(json.dumps([method, target, kept, text], ensure_ascii=False))
            if line not in places:
                places[line] = len(lines)
                lines.append(line)
            one.append(places[line])
        lists.append(f" {json.dumps(case['name'])}: {json.dumps(one, separators=(',', ':'))}")
    text = '{"requests": [\n' + ",\n".join(lines) + '\n],\n"cases": {\n' + ",\n".join(lists) + "\n}}\n"
    path.write_text(text, encoding="utf-8")


def load(path):
    saved = json.loads(path.read_text(encoding="utf-8"))
    requests = []
    for method, target, headers, text in saved["requests"]:
        body = text.encode() if isinstance(text, str) else base64.b64decode(text[1])
        requests.append(Request(method, target, headers, body))
    return {name: ([requests[i] for i in places], "") for name, places in saved["cases"].items()}


# ---- comparing ------------------------------------------------------------------


def make_reader():
    try:
        import zstandard

        inflate = lambda data: zstandard.ZstdDecompressor().decompress(data, 1 << 26)
    except ImportError:
        inflate = None
    try:
        from tinker.proto import tinker_public_pb2

        return compare.Reader(
            lambda body: messages.with_protobuf(tinker_public_pb2.ForwardBackwardRequest.FromString(body)),
            inflate)
    except ImportError:
        schema = messages.Schema(PROTO.read_text())
        return compare.Reader(lambda body: schema.read("ForwardBackwardRequest", body), inflate)


def report(cases, ours, theirs, tap):
    reader = make_reader()
    failed = 0
    if tap:
        print(f"1..{len(cases)}")
    for i, case in enumerate(cases, 1):
        name = case["name"]
        lines = compare.compare(case, ours[name][0], theirs[name][0], reader)
        failed += bool(lines)
        if tap or lines:
            print(f"{'not ok' if lines else 'ok'} {i} - wire {name}")
        for line in lines:
            print(f"#   {line}")
        if lines:
            print(f"#   official: {theirs[name][1][:300]}\n#   tnk: {ours[name][1][:300]}")
    n_requests = sum(len(ours[c["name"]][0]) for c in cases)
    if not tap:
        print(f"{len(cases)} cases, {n_requests} requests of tnk compared with the official client's")
        print(f"{len(cases) - failed} passed, {failed} failed")
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tnk", required=True)
    parser.add_argument("--driver")
    parser.add_argument("--python")
    parser.add_argument("--package", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    table = HERE / "calls.json"
    cases = [c for c in json.loads(table.read_text(encoding="utf-8")) if args.only in c["name"]]
    if args.package:
        cases = [c for c in cases if not c["name"].startswith(COMMANDS)]
    path = os.pathsep.join([str(HERE), str(HERE.parent / "standin")])
    if args.python:
        theirs = record(args, [args.python, str(HERE / "official.py"), str(table)], cases, path)
        if args.vectors:
            save(args.vectors, theirs, cases)
    else:
        theirs = load(args.vectors)
    if args.package:
        python = [args.python or sys.executable, "-m", "tnk", "run", str(HERE / "official.py")]
        ours = record(args, [*python, str(table)], cases, str(args.package) + os.pathsep + path)
    else:
        ours = record(args, [args.driver, str(table)], cases)
    failed = report(cases, ours, theirs, tap=not args.python)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
