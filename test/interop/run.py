"""The official Python client against `tnk local`: see README.md.

Makes one environment with the newest client, puts older clients beside it,
starts a server for each setting, runs the cases with each client, and prints
which calls were made how often.
"""

import argparse
import collections
import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Newest, one in between, and the oldest whose requests are still these.
VERSIONS = ["0.38.0", "0.30.4", "0.25.0"]
KEY = "tml-interop"
MAIN = ["service", "training", "losses", "sampling", "rest", "custom"]


class Setting:
    """How a server is started, and which groups of cases meet it."""

    def __init__(self, name, groups, flags=None, switches=()):
        self.name = name
        self.groups = groups
        self.flags = flags or {}
        self.switches = list(switches)

    def arguments(self):
        given = [part for f, v in self.flags.items() for part in ("--flag", f"{f}={v}")]
        return given + self.switches


SETTINGS = [
    Setting("plain", MAIN + ["cli"], {"use_pyqwest_transport": "false"}),
    Setting("other transport, batched retrieval, chunks in parallel, zstd", MAIN, {
        "use_pyqwest_transport": "true",
        "sample_use_retrieve_futures": "true",
        "sample_join_sampling_session": "true",
        "sample_cancel_enabled": "true",
        "proto_compress_fwdbwd": "true",
        "parallel_fwdbwd_chunks": "true",
    }, ["--max-chunk", "2"]),
    Setting("batched retrieval, chunks in turn, sizes first", ["training", "losses", "sampling"], {
        "use_pyqwest_transport": "false",
        "sample_use_retrieve_futures": "true",
        "sample_cancel_enabled": "true",
        "parallel_fwdbwd_chunks": "false",
    }, ["--max-chunk", "2", "--metadata-from", "1"]),
    Setting("key wanted", ["auth"], {"use_pyqwest_transport": "false"}, ["--api-key", KEY]),
]


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
        command = [str(self.python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        ran = subprocess.run(command + list(args), capture_output=True, text=True, timeout=400)
        if ran.returncode != 0:
            lines = (ran.stderr or ran.stdout).strip().splitlines() or ["pip failed"]
            skip_all(f"PyPI cannot be reached or does not have it: {lines[-1]}")

    def prepare(self, versions):
        """The environment has what every version imports; older clients are
        single packages beside it."""
        self.cache.mkdir(parents=True, exist_ok=True)
        if not self.python.exists():
            made = subprocess.run([sys.executable, "-m", "venv", str(self.cache / "env")],
                                  capture_output=True, text=True)
            if made.returncode != 0:
                skip_all("python3 -m venv does not work here")
        mark = self.cache / "env" / "installed"
        if not mark.exists() or mark.read_text() != versions[0]:
            self.pip(f"tinker=={versions[0]}")
            mark.write_text(versions[0])
        for version in versions[1:]:
            target = self.cache / f"tinker-{version}"
            if not (target / "tinker").exists():
                self.pip("--no-deps", "--target", str(target), f"tinker=={version}")

    def path(self, version):
        """For PYTHONPATH."""
        target = self.cache / f"tinker-{version}"
        return [str(target)] if version != VERSIONS[0] else []


# ---- the server ---------------------------------------------------------------


class Server:
    def __init__(self, tnk, arguments):
        self.calls = collections.Counter()
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
            found = re.match(r"\d+ (\S+) (\S+) seq=\S+ (-?\d+)", line)
            if found:
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

    def add(self, outcome, label, text=""):
        self.outcomes[outcome] += 1
        if outcome == "failed":
            self.failures.append(label)
            print(f"not ok {label}\n" + "\n".join("    " + l for l in text.splitlines()))

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


def run_worker(clients, version, server, setting, groups, only, tally):
    path = [str(HERE), *clients.path(version)]
    if "custom" in groups:
        path.append(str(HERE / "standin"))
    env = dict(os.environ, TINKER_BASE_URL=server.url, TINKER_API_KEY=KEY, HOME=str(clients.cache / "home"),
               PYTHONPATH=os.pathsep.join(path), PYTHONDONTWRITEBYTECODE="", HF_HUB_OFFLINE="1",
               NO_PROXY="*", COLUMNS="200")
    env.pop("TINKER_PROJECT_ID", None)
    command = [str(clients.python), str(HERE / "worker.py"), "--flags", json.dumps(setting.flags),
               "--only", only, *groups]
    log = clients.cache / f"log-{version}.txt"
    with open(log, "w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env)
        finished = False
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            answer = json.loads(line)
            if "calls" in answer:
                finished = True
                tally.calls.update(answer["calls"])
                continue
            label = f"{version} [{setting.name}] {answer['case']}"
            if os.environ.get("INTEROP_VERBOSE"):
                print(f"{answer['outcome']:8} {answer['seconds']:6.2f} s {label} {answer['text'][:90] if answer['outcome'] == 'skipped' else ''}", flush=True)
            tally.add(answer["outcome"], label, answer["text"])
        process.wait()
    if not finished:
        tally.add("failed", f"{version} [{setting.name}]: the run ended early", log.read_text()[-3000:])


def run_setting(clients, args, setting, tally):
    for version in args.versions:
        groups = [g for g in setting.groups if not args.groups or g in args.groups]
        if not groups:
            continue
        began = time.monotonic()
        server = Server(args.tnk, setting.arguments())
        # The stand-in for torch changes what the client imports: apart.
        for part in ([g for g in groups if g != "custom"], [g for g in groups if g == "custom"]):
            if part:
                run_worker(clients, version, server, setting, part, args.only, tally)
        code = server.stop()
        tally.requests.update(server.calls)
        tally.add("passed" if code == 0 else "failed", f"{version} [{setting.name}]: server ends",
                  f"status {code}\n" + "\n".join(list(server.tail)[-20:]))
        print(f"# {version} [{setting.name}]: {time.monotonic() - began:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tnk", required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--versions", type=lambda t: t.split(","), default=VERSIONS)
    parser.add_argument("--groups", type=lambda t: t.split(",") if t else [], default=[])
    parser.add_argument("--settings", type=lambda t: [int(i) for i in t.split(",")], default=None)
    parser.add_argument("--only", default="", help="part of a case's name")
    args = parser.parse_args()
    clients = Clients(args.cache)
    clients.prepare([VERSIONS[0]] + [v for v in args.versions if v != VERSIONS[0]])
    (args.cache / "home").mkdir(exist_ok=True)
    tally = Tally()
    for i, setting in enumerate(SETTINGS):
        if args.settings is None or i in args.settings:
            run_setting(clients, args, setting, tally)
    tally.print(args.versions)
    sys.exit(1 if tally.outcomes["failed"] else 0)


if __name__ == "__main__":
    main()
