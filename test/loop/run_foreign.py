#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An idle service in event loops that are not libuv's. Every kind of loop runs
at the same time, each with a server of its own, for 31 seconds of real time. The
session must get its heartbeats, one in 10 seconds, and the idle program must use
almost no processor time. What it takes to start and to open the service does not
count. The limits leave room for a busy machine: a loop that spins uses 8 s and more,
and one without timers sends no heartbeat.

usage: run_foreign.py FOREIGN EXAMPLE LIBTNK TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from tap import check, plan, skip

FOREIGN, EXAMPLE, LIBTNK, TNK = sys.argv[1:]
SECONDS, MAX_CPU, MIN_HEARTBEATS, SKIPPED = 31, 0.5, 2, 77
LAYOUT = subprocess.run([FOREIGN, "layout"], capture_output=True, text=True,
                        check=True).stdout.split()
KINDS = {kind: [FOREIGN, kind, str(SECONDS)] for kind in ("poll", "epoll", "glib", "sleep")}
KINDS["asyncio"] = [sys.executable, HERE / "foreign.py", LIBTNK, str(SECONDS), *LAYOUT]
KINDS["the example"] = [EXAMPLE]


def stat_of(pid):
    """The state of a process, which stays until somebody waits for it, and its times in ticks."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return words[0], int(words[11]) + int(words[12])


def has_ended(pid):
    return stat_of(pid)[0] == "Z"


def cpu_of(pid):
    return stat_of(pid)[1] / os.sysconf("SC_CLK_TCK")


class Run:
    def __init__(self, kind, folder):
        self.log = pathlib.Path(folder, kind)
        env = {k: v for k, v in os.environ.items() if not k.startswith("TINKER_")}
        self.server = subprocess.Popen(
            [TNK, "local", "--port", "0", "--exit-with-stdin", "-v"], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log.open("w"))
        url = re.search(r"listening on (\S+)", self.server.stdout.readline())[1]
        env |= {"TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local", "no_proxy": "*"}
        self.program = subprocess.Popen(KINDS[kind], env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def begin_idling(self):
        """Wait until the program has made what it needs, or has ended."""
        while "/create_sampling_session " not in self.log.read_text() and not has_ended(self.program.pid):
            time.sleep(0.05)
        self.cpu = -cpu_of(self.program.pid)

    def end_idling(self):
        self.cpu += cpu_of(self.program.pid)

    def finish(self):
        self.program.stdin.close()
        self.err = self.program.stderr.read()
        self.program.wait(60)
        self.server.stdin.close()
        self.server.wait(60)
        self.heartbeats = len(re.findall("session_heartbeat .* 200 ", self.log.read_text()))


def judge(kind, run):
    if run.program.returncode == SKIPPED:
        skip(kind, "its library is not installed")
        return
    check(run.program.returncode == 0, f"{kind}: the program works", run.err)
    check(run.heartbeats >= MIN_HEARTBEATS, f"{kind}: heartbeats are sent", run.heartbeats)
    check(run.cpu < MAX_CPU, f"{kind}: an idle service needs no processor", run.cpu)


def main():
    with tempfile.TemporaryDirectory() as folder:
        runs = {kind: Run(kind, folder) for kind in KINDS}
        for run in runs.values():
            run.begin_idling()
        # The example is idle until its input ends.
        time.sleep(SECONDS)
        for run in runs.values():
            run.end_idling()
        for run in runs.values():
            run.finish()
        for kind, run in runs.items():
            judge(kind, run)
    plan()


main()
