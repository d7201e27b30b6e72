#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train and tnk rl with --log-to: trackers have each step once, and cannot harm the run.

usage: run_log_to.py TNK_COMMAND

Runs are complete, interrupted or killed, and trackers work, are down or do not answer. The cases
run at the same time, because they wait for each other's processes. Output is TAP, see
test/support/tap.py.
"""
import concurrent.futures
import contextlib
import fcntl
import itertools
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

from console import CLEAN, TNK, check, plan, skip, tnk
from ports import reserve
from trackers import Server, events_of, of_run
from train_runs import chat, metrics, write

PLAYER = pathlib.Path(__file__).with_name("rl_environment.py")
# More than tnk train has in flight, so that a signal leaves some.
STEPS, AT_ONCE = 24, 4
KEY = "t0ken-of-mlflow"
COMMANDS = {
    "train": ("--steps", STEPS, "--batch", 4, "--learning-rate", "0.01", "--save-every", 3),
    "rl": ("--steps", STEPS, "--groups", 1, "--group-size", 2, "--learning-rate", "0.02", "--save-every", 3, "--environment",
           shlex.join([sys.executable, "-I", "-S", str(PLAYER)])),
}


class Wrong(Exception):
    pass


def require(is_so, *what):
    if not is_so:
        raise Wrong(" ".join(map(str, what)))


class Board:
    name = "tensorboard"

    def __init__(self, top):
        self.folder = top / "boards" / "board"
        self.where = f"tensorboard:{self.folder}"

    def steps(self):
        files = [*self.folder.glob("*")] if self.folder.exists() else []
        require(len(files) < 2, "one file", files)
        return [event[1] for file in files for event in events_of(file) if event[3]]

    state = stop = lambda self: None


class Project:
    name = "trackio"

    def __init__(self, top):
        self.path = top / "mine.db"
        self.where = f"trackio:{self.path}"

    def steps(self):
        return of_run(self.path, "run")[0] if self.path.exists() else []

    state = stop = lambda self: None


class Mlflow:
    name = "mlflow"

    def __init__(self, top):
        self.server = Server()
        self.where = f"mlflow:{self.server.url}"

    def steps(self):
        living = self.server.living()
        require(len(living) < 2, "one run", len(living))
        require(self.server.keys <= {f"Bearer {KEY}"}, "the key", self.server.keys)
        return [one["step"] for run in living for one in run["metrics"] if one["key"] == "learning_rate"]

    def state(self):
        return self.server.living()[0]["status"]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def steps_of(run):
    return [json.loads(line)["step"] for line in metrics(run).splitlines()]


def args_of(command, chats, run, *where):
    return [TNK, command, *([str(chats)] if command == "train" else []), "--local", "--run", str(run),
            *map(str, COMMANDS[command]), *(part for one in where for part in ("--log-to", one))]


def run_whole(args, *more):
    return subprocess.run([*args, *more], env={**CLEAN, "MLFLOW_TRACKING_TOKEN": KEY}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=250)


def children_of(pid):
    return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def loggers_of(pid):
    found = {}
    for child in children_of(pid):
        with contextlib.suppress(FileNotFoundError):
            line = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if b"--exit-with-stdin" in line:
                found[child] = line
    return found


def in_the_middle(args, run, n_steps, act):
    """Call act(process) after n_steps steps. The run cannot end before: its standard error is a pipe with room for
    about as many lines, which nobody reads until then. Returns the status and what all processes have said."""
    back, front = os.pipe()
    filled = os.write(front, b"\n" * (fcntl.fcntl(front, fcntl.F_SETPIPE_SZ, 4096) - 100 * n_steps))
    with open(back) as file, subprocess.Popen(args, env={**CLEAN, "MLFLOW_TRACKING_TOKEN": KEY}, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.DEVNULL, stderr=front, start_new_session=True) as process:
        os.close(front)
        path = run / "metrics.jsonl"
        while process.poll() is None and not (path.exists() and path.read_text().count("\n") >= n_steps):
            time.sleep(0.002)
        act(process)
        # To the end of the last process that has the pipe.
        said = file.read()[filled:]
    return process.returncode, said


def complete(top, chats, command, kinds):
    """All steps are there once, also after the same command again, and nothing is said with --quiet."""
    run = top / "run"
    trackers = [kind(top) for kind in kinds]
    got = run_whole(args_of(command, chats, run, *(t.where for t in trackers), "html"))
    require(got.returncode == 0 and "not all steps" not in got.stderr, got)
    page = (run / "report.html").read_text()
    require("finished" in page and "refresh" not in page, "the last page")
    for tracker in trackers:
        require(tracker.steps() == [*range(1, STEPS + 1)], tracker.name, tracker.steps())
        require(tracker.state() in (None, "FINISHED"), tracker.state())
    kept = json.loads((run / "config.json").read_text())
    require(kept["settings"]["log-to"] == [*(t.where for t in trackers), "html"], kept["settings"])
    again = run_whole(args_of(command, chats, run, *(t.where for t in trackers)), "--quiet")
    require(again.returncode == 0 and again.stderr == "", again)
    for tracker in trackers:
        require(tracker.steps() == [*range(1, STEPS + 1)], tracker.name, tracker.steps())
        tracker.stop()


def ended_and_resumed(top, chats, command, kinds, how):
    """The loggers write the last steps after the process has ended. Another process resumes the run."""
    run = top / "run"
    trackers = [kind(top) for kind in kinds]
    args = args_of(command, chats, run, *(t.where for t in trackers))
    seen = {}

    def act(process):
        seen.update(loggers_of(process.pid))
        if how == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)
            # As in a shell without job control, which has one group.
            for pid, number in itertools.product(seen, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
                os.kill(pid, number)
        else:
            process.kill()

    status, said = in_the_middle(args, run, 4, act)
    require(status == (130 if how == "Ctrl-C" else -signal.SIGKILL), status, said)
    require(len(seen) == len(kinds) and not any(KEY.encode() in word for line in seen.values() for word in line), seen)
    for tracker in trackers:
        require(tracker.steps() == steps_of(run), how, tracker.name, tracker.steps(), steps_of(run), said)
        require(tracker.state() in (None, "KILLED"), tracker.state())
    got = run_whole(args)
    require(got.returncode == 0, got)
    for tracker in trackers:
        require(tracker.steps() == [*range(1, STEPS + 1)], "resumed", tracker.name, tracker.steps(), got)
        require(tracker.state() in (None, "FINISHED"), tracker.state())
        tracker.stop()


def is_down(top, chats, command, kinds):
    """The run has the same result. It is reported that steps are missing."""
    (top / "plain").parent.mkdir(parents=True, exist_ok=True)
    plain, run = top / "plain", top / "run"
    (top / "file").write_text("no folder")
    places = {"tensorboard": f"tensorboard:{top}/file/board", "trackio": f"trackio:{top}/file/mine.db",
              "mlflow": f"mlflow:http://127.0.0.1:{reserve()}"}
    where = [places[kind.name] for kind in kinds]
    want = run_whole(args_of(command, chats, plain))
    got = run_whole(args_of(command, chats, run, *where), "--quiet")
    require(got.returncode == want.returncode == 0, got)
    # Episodes of tnk rl end in another order each time.
    require(command == "rl" or metrics(run) == metrics(plain), "the same metrics")
    for place in where:
        require(len([line for line in got.stderr.splitlines() if "not all steps were written to " + place in line]) == 1, got)
    require(len(got.stderr.splitlines()) <= 3 * len(where) and "tried again" not in got.stderr, "errors only", got)


def never_answers(top, chats, command):
    """A server that takes connections. The run waits for it once, at its end."""
    run = top / "run"
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"mlflow:http://127.0.0.1:{server.getsockname()[1]}"
        got = run_whole(args_of(command, chats, run, where))
    require(got.returncode == 0 and f"the last steps are being written to {where}" in got.stderr and
            re.search(f"not all steps were written to {where} \\((ended after 30 s of waiting|status 5)\\)", got.stderr), got)
    require(steps_of(run) == [*range(1, STEPS + 1)], "the run is complete")


def cannot_start(top, chats, command):
    """Wrong values are refused before anything begins."""
    run = top / "run"
    for where, words in ((("nowhere",), "tensorboard:DIR"), (("tensorboard:",), "trackio:FILE"), (("tensorboard",), "mlflow:URL"),
                         (("html:x",), "html"), (("mlflow:nonsense",), "--log-to mlflow"), (("tensorboards:x",), "takes"),
                         (("mlflow:http://me:hunter2@127.0.0.1:1",), "password"), (("html", "html"), "twice"),
                         (("html", "tensorboard:x", "html"), "twice")):
        got = run_whole(args_of(command, chats, run, *where))
        require(got.returncode == 2 and words in got.stderr and "hunter2" not in got.stderr and not run.exists(), where, got)


def has_no_sqlite():
    with tempfile.TemporaryDirectory() as probe:
        (pathlib.Path(probe) / "metrics.jsonl").write_text("")
        return "built without SQLite" in tnk("report", probe, "--trackio", pathlib.Path(probe) / "x.db").stderr


def cases():
    kinds = (Board, Mlflow, Project)
    if has_no_sqlite():
        got = tnk("rl", "--log-to", "trackio:x")
        check(got.returncode == 2 and "built without SQLite" in got.stderr, "trackio without SQLite", got)
        skip("projects of trackio", "this tnk was built without SQLite")
        kinds = kinds[:2]
    for command in COMMANDS:
        yield complete, command, kinds
        yield is_down, command, kinds
        for how in ("Ctrl-C", "SIGKILL"):
            yield ended_and_resumed, command, kinds, how
    yield never_answers, "train"
    yield cannot_start, "train"
    yield cannot_start, "rl"


def result_of(folder, chats, what, *args):
    folder.mkdir()
    try:
        what(folder, chats, *args)
    except Wrong as wrong:
        return str(wrong)
    except Exception as error:  # a test that is broken must not look like one that has passed
        return repr(error)
    return None


with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
    text = write(pathlib.Path(tmp) / "chats.jsonl", [chat(f"question {i}", f"answer {i}") for i in range(16)])
    rows = [*cases()]
    for row, wrong in zip(rows, pool.map(lambda i: result_of(pathlib.Path(tmp) / str(i), text, *rows[i]), range(len(rows)))):
        name = " ".join(part if isinstance(part, str) else part.__name__ for part in row if not isinstance(part, tuple))
        check(wrong is None, name, wrong)
plan()
