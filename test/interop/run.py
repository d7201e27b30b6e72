# SPDX-License-Identifier: MIT
"""The official Python client against `tnk local`: see README.md.

Makes one environment with the newest client, puts older clients beside it,
starts a server for each setting, runs the cases with each client, and prints
which calls were made how often.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "support"))
import own_venv  # noqa: E402

HERE = Path(__file__).resolve().parent
# Newest, two in between (0.25 dropped the JSON form of passes), and the oldest
# that can send protobuf, with a flag.
VERSIONS = ["0.38.0", "0.30.4", "0.25.0", "0.22.0"]
# Without --tls: those that send what the others do not.
USUAL = ["0.38.0", "0.25.0", "0.22.0"]
# What older clients import beyond the newest one's dependencies.
EXTRA = {"0.22.0": ["grpcio"]}
KEY = "tml-interop"
PEM = HERE.parent / "cli" / "localhost.pem"
STACK = "use_pyqwest_transport"  # which of its two HTTP stacks the client takes
MAIN = ["service", "training", "losses", "sampling", "rest", "custom"]


class Setting:
    """How a server is started, and which groups of cases meet it."""

    def __init__(self, name, groups, flags=None, switches=(), tls=False, versions=None):
        self.name = name
        self.groups = groups
        self.flags = flags or {}
        self.switches = list(switches)
        self.tls = tls
        self.versions = versions  # None: all that are asked for

    def arguments(self):
        given = [part for f, v in self.flags.items() for part in ("--flag", f"{f}={v}")]
        if self.tls:
            given += ["--tls-cert", str(PEM), "--tls-key", str(PEM)]
        return given + self.switches

    def over_tls(self, stack, groups=None, versions=None):
        """The same over TLS, where the client speaks HTTP/2."""
        name = f"{self.name}, TLS, {'pyqwest' if stack == 'true' else 'httpx'}"
        return Setting(name, groups or self.groups, {**self.flags, STACK: stack}, self.switches,
                       True, versions)


SETTINGS = [
    Setting("command line", ["cli"], {"use_pyqwest_transport": "false"}, versions=[VERSIONS[0], VERSIONS[-1]]),
    Setting("command line beside tnk's", ["commands"], {"use_pyqwest_transport": "false"},
            ["--tokens", "600"], versions=VERSIONS[:1]),
    Setting("plain", MAIN, {"use_pyqwest_transport": "false"}),
    Setting("other transport, batched retrieval, chunks in parallel, zstd", MAIN, {
        "use_pyqwest_transport": "true",
        "sample_use_retrieve_futures": "true",
        "sample_join_sampling_session": "true",
        "sample_cancel_enabled": "true",
        "proto_compress_fwdbwd": "true",
        "parallel_fwdbwd_chunks": "true",
        "proto_write_fwdbwd": "true",
    }, ["--max-chunk", "2"]),
    Setting("batched retrieval, chunks in turn, sizes first", ["training", "losses", "sampling"], {
        "use_pyqwest_transport": "false",
        "sample_use_retrieve_futures": "true",
        "sample_cancel_enabled": "true",
        "parallel_fwdbwd_chunks": "false",
    }, ["--max-chunk", "2", "--metadata-from", "1"]),
    Setting("key wanted", ["auth"], {"use_pyqwest_transport": "false"}, ["--api-key", KEY]),
    Setting("tokens wanted", ["auth", "tokens"], {"use_pyqwest_transport": "false"},
            ["--api-key", KEY, "--tokens", "3"]),
]
STACKS = ["false", "true"]
# Of those over TLS, what every run does; --tls does all of them.
SETTINGS += [SETTINGS[2].over_tls(stack, ["service", "training", "sampling"], VERSIONS[:1])
             for stack in STACKS]


def settings_over_tls():
    """All of them. The oldest client's pyqwest trusts no authority but those it
    was built with, and the command line's processes sometimes abort with it
    when they end, so these two go with httpx alone."""
    return [s.over_tls(stack, versions=s.versions or (VERSIONS[:-1] if stack == "true" else None))
            for s in SETTINGS if not s.tls for stack in STACKS
            if stack == "false" or s.groups not in (["cli"], ["commands"])]


def skip_all(why):
    print(f"interop: skipped: {why}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)


# ---- the clients --------------------------------------------------------------


class Clients:
    def __init__(self, cache):
        self.cache = cache
        self.python = cache / "env" / "bin" / "python"

    def pip(self, *args):
        try:
            own_venv.install(self.python, *args)
        except own_venv.Unreachable as e:
            skip_all(f"PyPI cannot be reached or does not have it: {e}")

    def make(self, *packages, alone=()):
        try:
            own_venv.make(self.python.parent.parent, *packages, alone=alone)
        except own_venv.Unreachable as e:
            skip_all(f"PyPI cannot be reached or does not have it: {e}")

    def prepare(self, versions):
        """The environment has what every version imports; older clients are
        single packages beside it."""
        self.cache.mkdir(parents=True, exist_ok=True)
        self.make(f"tinker=={versions[0]}")
        for version in versions[1:]:
            target = self.cache / f"tinker-{version}"
            if not (target / "tinker").exists():
                self.pip("--no-deps", "--target", str(target), f"tinker=={version}",
                         *EXTRA.get(version, []))

    def command(self, script):
        """What runs a program of the client."""
        return [str(self.python), str(script)]

    def path(self, version):
        """For PYTHONPATH."""
        target = self.cache / f"tinker-{version}"
        return [str(target)] if version != VERSIONS[0] else []


# ---- the server ---------------------------------------------------------------


class Server:
    def __init__(self, tnk, arguments):
        self.tnk = tnk
        self.calls = collections.Counter()
        self.versions = collections.Counter()  # of HTTP
        self.tail = collections.deque(maxlen=400)
        command = [tnk, "local", "--verbose", "--exit-with-stdin", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        if not select.select([self.process.stdout], [], [], 30)[0]:
            raise RuntimeError("the server does not listen")
        self.url = self.process.stdout.readline().split()[-1]
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.tail.append(line.rstrip())
            found = re.match(r"\d+ (\S+) (\S+) seq=\S+ (-?\d+) (\S+)", line)
            if found:
                # Files are fetched by the cases themselves; and what the
                # client's sign-in asks, it asks over HTTP/1.1 alone.
                if not found[2].startswith(("/files/", "/api/v1/auth/")):
                    self.versions[found[4]] += 1
                self.calls[self.call_of(found[1], found[2].split("?")[0])] += 1

    @staticmethod
    def call_of(method, path):
        """Ids out of the path."""
        parts = path.removeprefix("/api/v1/").split("/")
        if parts[0] in ("sessions", "samplers", "training_runs") and len(parts) > 1:
            parts[1] = "*"
        if len(parts) > 4 and parts[2] == "checkpoints":
            parts[3:5] = ["*", "*"]
        return f"{method} {'/'.join(parts)}"

    def stop(self):
        self.process.stdin.close()
        code = self.process.wait(30)
        self.reader.join(10)
        return code


# ---- all together -------------------------------------------------------------


class Tally:
    def __init__(self):
        self.outcomes = collections.Counter()
        self.calls = collections.Counter()
        self.requests = collections.Counter()
        self.failures = []
        self.lock = threading.Lock()

    def add(self, outcome, label, seconds=0, text=""):
        with self.lock:
            self.outcomes[outcome] += 1
            if os.environ.get("INTEROP_VERBOSE"):
                print(f"{outcome:8} {seconds:6.2f} s {label}", flush=True)
            if outcome == "failed":
                self.failures.append(label)
                lines = [f"not ok {label}", *("    " + line for line in text.splitlines())]
                print("\n".join(lines), flush=True)

    def count(self, counter, more):
        with self.lock:
            counter.update(more)

    def print(self, versions):
        print("\ncalls of the client, over all runs")
        for name, n in sorted(self.calls.items()):
            print(f"  {n:6} {name}")
        print("\nrequests that the server answered")
        for name, n in sorted(self.requests.items()):
            print(f"  {n:6} {name}")
        for label in self.failures:
            print(f"failed: {label}")
        print(f"\ninterop with the official client {', '.join(versions)}")
        o = self.outcomes
        skipped = f", {o['skipped']} skipped" if o["skipped"] else ""
        print(f"{o['passed']} passed, {o['failed']} failed{skipped}")


def environment(clients, version, server, groups):
    path = [str(HERE), *clients.path(version)]
    if "custom" in groups:
        path.append(str(HERE / "standin"))
    env = {name: value for name, value in os.environ.items() if not name.startswith("TINKER_")}
    env.update(INTEROP_TNK=str(Path(server.tnk).resolve()), TINKER_BASE_URL=server.url, TINKER_API_KEY=KEY, HOME=str(clients.cache / "home"),
               PYTHONPATH=os.pathsep.join(path), HF_HUB_OFFLINE="1", NO_PROXY="*", no_proxy="*", COLUMNS="200")
    if server.url.startswith("https:"):
        # Our command would put questions over HTTP/1.1, as it does submissions.
        env.update(SSL_CERT_FILE=str(PEM), TNK_HTTP_VERSION="2")
    return env


def run_worker(clients, version, server, setting, groups, only, tally):
    where = f"{version} [{setting.name}]"
    command = [*clients.command(HERE / "worker.py"), "--flags", json.dumps(setting.flags),
               "--only", only, *groups]
    finished = False
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                   env=environment(clients, version, server, groups))
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            answer = json.loads(line)
            if "calls" in answer:
                finished = True
                tally.count(tally.calls, answer["calls"])
                server.versions["HTTP/1.1"] -= answer["own"]
            else:
                tally.add(answer["outcome"], f"{where} {answer['case']}", answer["seconds"],
                          answer["text"])
        process.wait()
        if not finished:
            errors.seek(0)
            tally.add("failed", f"{where}: the run ended early", 0, errors.read()[-3000:])


def run_setting(clients, args, setting, version, tally):
    groups = [g for g in setting.groups if not args.groups or g in args.groups]
    if not groups:
        return
    began = time.monotonic()
    server = Server(args.tnk, setting.arguments())
    # The stand-in for torch changes what the client imports: apart.
    for part in ([g for g in groups if g != "custom"], [g for g in groups if g == "custom"]):
        if part:
            run_worker(clients, version, server, setting, part, args.only, tally)
    code = server.stop()
    tally.count(tally.requests, server.calls)
    where = f"{version} [{setting.name}]"
    tally.add("passed" if code == 0 else "failed", f"{where}: server ends", 0,
              f"status {code}\n" + "\n".join(list(server.tail)[-20:]))
    if setting.tls:
        spoken = ", ".join(f"{n} by {v}" for v, n in server.versions.items())
        tally.add("passed" if set(+server.versions) == {"HTTP/2"} else "failed",
                  f"{where}: HTTP/2 is spoken", 0, spoken)
    print(f"# {where}: {time.monotonic() - began:.0f} s", flush=True)


def run_wire(clients, args, tally):
    """What both clients send: wire/wire.py."""
    command = [str(clients.python), str(HERE / "wire" / "wire.py"), "--tnk", args.tnk,
               "--driver", args.driver, "--python", str(clients.python)]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ran = subprocess.run(command, capture_output=True, text=True, env=env)
    print(ran.stdout + ran.stderr, end="")
    found = re.search(r"^(\d+) passed, (\d+) failed$", ran.stdout, re.M)
    tally.outcomes["passed"] += int(found[1]) if found else 0
    tally.outcomes["failed"] += int(found[2]) if found else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tnk", required=True)
    parser.add_argument("--driver", default="", help="wire_tnk; compares what is sent")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--versions", type=lambda t: t.split(","), default=None,
                        help=f"{','.join(USUAL)}; with --tls {','.join(VERSIONS)}")
    parser.add_argument("--groups", type=lambda t: t.split(",") if t else [], default=[])
    parser.add_argument("--settings", type=lambda t: [int(i) for i in t.split(",")], default=None)
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--tls", action="store_true",
                        help="every setting over TLS, with each of the client's two stacks")
    args = parser.parse_args()
    args.versions = args.versions or (VERSIONS if args.tls else USUAL)
    clients = Clients(args.cache)
    clients.prepare([VERSIONS[0]] + [v for v in args.versions if v != VERSIONS[0]])
    (args.cache / "home").mkdir(exist_ok=True)
    tally = Tally()
    settings = settings_over_tls() if args.tls else SETTINGS
    chosen = [s for i, s in enumerate(settings) if args.settings is None or i in args.settings]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = [pool.submit(run_setting, clients, args, setting, version, tally)
                for setting in chosen for version in args.versions
                if setting.versions is None or version in setting.versions]
        for run in runs:
            run.result()
    if args.driver and not args.groups and not args.tls:
        run_wire(clients, args, tally)
    tally.print(args.versions)
    sys.exit(1 if tally.outcomes["failed"] else 0)


if __name__ == "__main__":
    main()
