#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk report --follow with trackers: each step of a run that goes on is there once.

usage: run_report_follow.py TNK_COMMAND

A run is not begun, running, cut back, and then complete or interrupted, while the tracker works or
fails. The cases run at the same time, because they wait most of it. Output is TAP, see
test/support/tap.py.
"""
import concurrent.futures
import contextlib
import itertools
import json
import pathlib
import resource
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time

from console import CLEAN, TNK, check, plan, skip, tnk
from ports import reserve
from trackers import Server, events_of, of_run, rows_of

FALSE_START = {1: 1.5, 2: 2.5, 3: 99.0}
STEPS = {1: 1.5, 2: 2.5, 3: 3.5, 4: 4.5, 5: 5.5}
ALL = {**STEPS, 6: 6.5}
AT_ONCE = 8


class Wrong(Exception):
    pass


def until(is_so, what):
    """Wait until it is so."""
    end = time.monotonic() + 100
    while not is_so():
        if time.monotonic() > end:
            raise Wrong(what() if callable(what) else what)
        time.sleep(0.02)


class Board:
    """Event files of TensorBoard, and what a board shows that is open all the time."""
    faults = ("none", "nowhere", "full")

    def __init__(self, top):
        self.top, self.folder = top, top / "parent" / "board"
        self.args = ("--tensorboard", self.folder)
        self.open()

    def open(self):
        self.n_read, self.shown = {}, {}

    def files(self):
        return sorted(self.folder.glob("*tfevents*")) if self.folder.is_dir() else []

    def steps(self):
        """A board reads what is new in each file, and forgets steps at a mark."""
        for file in self.files():
            with contextlib.suppress(FileNotFoundError):
                events = events_of(file, is_growing=True)
                for _, step, _, values, mark in events[self.n_read.get(file, 0):]:
                    if mark:
                        self.shown = {k: v for k, v in self.shown.items() if k < step}
                    if values:
                        if step in self.shown:
                            raise Wrong(f"step {step} is there twice")
                        self.shown[step] = values["loss"]
                self.n_read[file] = len(events)
        return self.shown

    def at_end(self, moment):
        steps = [event[1] for event in events_of(self.files()[0]) if event[3]]
        if len(self.files()) != 1 or steps != [*ALL]:
            raise Wrong(f"one file has each step once: {self.files()} {steps}")

    def files_that_grow(self):
        return self.files()


class Project:
    """A project of trackio."""
    faults = ("none", "nowhere", "full", "locked")

    def __init__(self, top):
        self.top, self.path = top, top / "parent" / "mine.db"
        self.args = ("--trackio", self.path)
        (top / "parent").mkdir()

    def steps(self):
        if not self.path.exists():
            return {}
        try:
            steps, metrics, times = of_run(self.path, "run")
        except sqlite3.OperationalError:
            return None
        if len(set(steps)) != len(steps) or times != sorted(times):
            raise Wrong(f"steps {steps}, times {times}")
        return {step: values["loss"] for step, values in zip(steps, metrics)}

    def at_end(self, moment):
        if rows_of(self.path, "SELECT count(*) FROM configs") != [(1,)]:
            raise Wrong("one configuration")

    def files_that_grow(self):
        return [self.path]


class Mlflow:
    """A server of MLflow."""
    faults = ("none", "nowhere", "refused", "lost")

    def __init__(self, top):
        self.port = reserve()
        self.server = None
        self.args = ("--mlflow", f"http://127.0.0.1:{self.port}")

    def start(self):
        self.server = self.server or Server(self.port)

    def steps(self):
        if self.server is None or not (living := self.server.living()):
            return {}
        # The run before is deleted when the next one has all of its steps.
        metrics = living[-1]["metrics"]
        if len({one["step"] for one in metrics}) != len(metrics):
            raise Wrong(f"steps {[one['step'] for one in metrics]}")
        return {one["step"]: one["value"] for one in metrics} if len(living) == 1 else None

    def at_end(self, moment):
        run, = self.server.living()
        wanted = {"complete": "FINISHED", "input": "KILLED"}.get(moment, "RUNNING")
        if run["status"] != wanted:
            raise Wrong(f"the state is {run['status']}, not {wanted}")


class Follower:
    """tnk report --follow of a run whose files the test writes."""

    def __init__(self, run, args, **more):
        self.said = []
        self.process = subprocess.Popen(
            [TNK, "report", run, "--follow", *map(str, args)], env=CLEAN, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, restore_signals=False,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, []), **more)
        self.reader = threading.Thread(target=lambda: self.said.extend(iter(self.process.stderr.readline, "")), daemon=True)
        self.reader.start()

    def warnings(self):
        return [line for line in self.said if "it is tried again" in line]

    def end(self):
        status = self.process.wait(100)
        self.reader.join(100)
        return status


@contextlib.contextmanager
def following(run, args):
    follower = Follower(run, args)
    try:
        yield follower
    finally:
        follower.process.kill()
        follower.process.wait()


def write_steps(run, steps, mode="a", late=""):
    with open(run / "metrics.jsonl", mode) as file:
        file.write("".join(json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in steps.items()) + late)


def is_shown(tracker, steps):
    return lambda: tracker.steps() == steps


def shows(tracker, steps, follower):
    until(is_shown(tracker, steps), lambda: f"{tracker.steps()} is not {steps}: {follower.said}")


def save(run, step, **more):
    """A line of the ledger."""
    line = {"name": f"s{step}", "batch": step, "state_path": f"tinker://r:train:0/weights/s{step}", "tnk": "saved",
            "tnk_attempt": 1, "tnk_save": step, "tnk_steps": step, "tnk_time": int(time.time()), **more}
    with open(run / "checkpoints.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")


def finish(run):
    save(run, 6, final=True)


@contextlib.contextmanager
def fault_at_start(tracker, fault, follower):
    """The tracker cannot be reached when the first steps are there."""
    if fault == "nowhere" and not isinstance(tracker, Mlflow):
        (tracker.top / "parent").rename(tracker.top / "away") if (tracker.top / "parent").exists() else None
        (tracker.top / "parent").write_text("no folder")
    elif fault != "nowhere" and isinstance(tracker, Mlflow):
        tracker.start()
    yield
    if fault != "nowhere":
        return
    until(follower.warnings, "a warning")
    if isinstance(tracker, Mlflow):
        tracker.start()
        return
    (tracker.top / "parent").unlink()
    if (tracker.top / "away").exists():
        (tracker.top / "away").rename(tracker.top / "parent")


@contextlib.contextmanager
def fault_in_the_middle(tracker, fault, follower):
    """The tracker fails for a while when more steps are there."""
    if fault not in ("full", "locked", "refused", "lost"):
        yield
        return
    if fault == "full":
        size = max(path.stat().st_size for path in tracker.files_that_grow())
        old = resource.prlimit(follower.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(follower.process.pid, resource.RLIMIT_FSIZE, (size + 10 if isinstance(tracker, Board) else 1, old[1]))
    elif fault == "refused":
        tracker.server.fails = ("", 503, {"error_code": "TEMPORARILY_UNAVAILABLE", "message": "it is ill"})
    elif fault == "lost":
        tracker.server.loses = "runs/log-batch"
    with contextlib.closing(sqlite3.connect(tracker.path, isolation_level=None) if fault == "locked" else contextlib.ExitStack()) as db:
        if fault == "locked":
            db.execute("BEGIN EXCLUSIVE")
        yield
        until(follower.warnings, "a warning")
    if fault == "full":
        resource.prlimit(follower.process.pid, resource.RLIMIT_FSIZE, old)
    elif isinstance(tracker, Mlflow):
        tracker.server.fails = tracker.server.loses = None


def one_case(top, kind, moment, fault):
    """All states of a run, one after the other. Returns what is wrong, or None."""
    run = top / "run"
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"began_s": int(time.time()) - 5, "options": {"seed": 7}}))
    tracker = kind(top)
    args = (*tracker.args, "--exit-with-stdin") if moment == "input" else tracker.args
    with following(run, args) as follower:
        with fault_at_start(tracker, fault, follower):
            write_steps(run, FALSE_START, late='{"step": 4, "lo')
        shows(tracker, FALSE_START, follower)
        save(run, 2)
        with fault_in_the_middle(tracker, fault, follower):
            # The run is resumed after step 2, and soon has more steps than before.
            write_steps(run, {1: 1.5, 2: 2.5}, "w")
            write_steps(run, {k: v for k, v in STEPS.items() if k > 2})
        shows(tracker, STEPS, follower)
        write_steps(run, {6: 6.5})
        if moment == "complete":
            finish(run)
        elif moment == "input":
            follower.process.send_signal(signal.SIGINT)
            follower.process.send_signal(signal.SIGTERM)
            follower.process.stdin.close()
        else:
            follower.process.send_signal(moment)
        status = follower.end()
        wanted = {signal.SIGINT: 130, signal.SIGTERM: 143}.get(moment, 0)
        if status != wanted or len(follower.warnings()) != (fault != "none") or \
                sum("works again" in line for line in follower.said) != (fault != "none"):
            raise Wrong(f"status {status}: {follower.said}")
    if tracker.steps() != ALL:
        raise Wrong(f"{tracker.steps()}: {follower.said}")
    tracker.at_end(moment)


def never_works(top, kind, moment):
    """Only if the last write fails, the command does."""
    run = top / "run"
    run.mkdir(parents=True)
    write_steps(run, FALSE_START)
    tracker = kind(top)
    if kind is Mlflow:
        words = "refused"
    else:
        (tracker.top / "parent").rmdir() if (tracker.top / "parent").exists() else None
        (tracker.top / "parent").write_text("no folder")
        words = "parent/"
    args = (*tracker.args, "--exit-with-stdin") if moment == "input" else tracker.args
    with following(run, args) as follower:
        until(follower.warnings, "a warning")
        if moment == "complete":
            finish(run)
        elif moment == "input":
            follower.process.stdin.close()
        else:
            follower.process.send_signal(moment)
        status = follower.end()
    wanted = {signal.SIGINT: 130, signal.SIGTERM: 143}.get(moment, 5 if kind is Mlflow else 6)
    if status != wanted or len(follower.warnings()) != 1 or words not in "".join(follower.said[1:]):
        raise Wrong(f"status {status}: {follower.said}")


def killed(top, kind):
    """A process that is killed, and its successor, which begins again. A second one takes over while the first lives."""
    run = top / "run"
    run.mkdir(parents=True)
    write_steps(run, FALSE_START)
    tracker = kind(top)
    if kind is Mlflow:
        tracker.start()
    with following(run, tracker.args) as follower:
        shows(tracker, FALSE_START, follower)
    write_steps(run, STEPS, "w")
    with following(run, tracker.args) as follower:
        shows(tracker, STEPS, follower)
        # The one before is still there, as after a kill of its run.
        with following(run, (*tracker.args, "--exit-with-stdin")) as second:
            until(lambda: tracker.steps() == STEPS and (kind is not Board or len(tracker.files()) == 1) and
                  (kind is not Mlflow or len(tracker.server.runs) == 3), "the second one has taken over")
            write_steps(run, {6: 6.5})
            shows(tracker, ALL, second)
            second.process.stdin.close()
            if second.end() != 0:
                raise Wrong(f"the second one: {second.said}")
        finish(run)
        until(lambda: follower.process.poll() is not None or follower.warnings() or tracker.steps() == ALL, "an end")
        follower.end()
    if tracker.steps() != ALL:
        raise Wrong(f"{tracker.steps()}: {follower.said}")
    tracker.at_end("input")


def once_after(top, kind):
    """The command without --follow replaces all."""
    run = top / "run"
    run.mkdir(parents=True)
    tracker = kind(top)
    if kind is Mlflow:
        tracker.start()
    with following(run, tracker.args) as follower:
        write_steps(run, FALSE_START)
        shows(tracker, FALSE_START, follower)
    write_steps(run, ALL, "w")
    finish(run)
    got = tnk("report", run, *tracker.args)
    if kind is Board:
        tracker.open()
    if got.returncode != 0 or tracker.steps() != ALL:
        raise Wrong(f"{tracker.steps()}: {got}")
    tracker.at_end("complete")


def wrong_usage(top, kind):
    run = top / "run"
    run.mkdir(parents=True)
    for args, words in ((("--mlflow", "nonsense"), "Check --mlflow"), (("--tensorboard", top / "b", "--exit-with-stdin"), ""),
                        (("--mlflow", "http://me:hunter2@127.0.0.1:1"), "password")):
        write_steps(run, FALSE_START)
        got = tnk("report", run, "--follow", *args)
        if words not in got.stderr or "hunter2" in got.stderr or got.returncode != (2 if words else 0):
            raise Wrong(str(got))


def cases():
    kinds = [Board, Mlflow]
    with tempfile.TemporaryDirectory() as probe:
        (pathlib.Path(probe) / "metrics.jsonl").write_text("")
        if "built without SQLite" in tnk("report", probe, "--trackio", pathlib.Path(probe) / "x.db").stderr:
            skip("projects of trackio", "this tnk was built without SQLite")
        else:
            kinds.append(Project)
    moments = ("complete", "input", signal.SIGINT, signal.SIGTERM)
    for kind, moment in itertools.product(kinds, moments):
        for fault in kind.faults:
            yield one_case, kind, moment, fault
        yield never_works, kind, moment
    for kind in kinds:
        yield killed, kind
        yield once_after, kind
    yield wrong_usage, Board


def result_of(number, top, what, *args):
    try:
        what(top / str(number), *args)
    except Wrong as wrong:
        return str(wrong)
    except Exception as error:  # a test that is broken must not look like one that has passed
        return repr(error)
    return None


with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
    rows = [*cases()]
    for row, wrong in zip(rows, pool.map(lambda i: result_of(i, pathlib.Path(tmp), *rows[i]), range(len(rows)))):
        name = " ".join(getattr(part, "__name__", str(part)) for part in row)
        check(wrong is None, name, wrong)
plan()
