#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk rl --url: agents connect by themselves, and their complete sessions are trained on.

usage: run_rl_serve.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import signal
import stat
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

import console
from console import CLEAN, TNK, plan, tnk

LOCK = threading.Lock()
RATE = ("--learning-rate", "0.02")


def check(*what):
    """The agents are threads, and their results are lines of one output."""
    with LOCK:
        console.check(*what)


def lines(run):
    path = run / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def vowels(text):
    return sum(letter in "aeiouAEIOU" for letter in text) / max(len(text), 1)


class Served:
    """A run at an address, and the harness of its agents."""

    def __init__(self, run, *args, env=None):
        self.run = run
        self.process = subprocess.Popen(
            [TNK, "rl", "--url", "http://127.0.0.1:0", "--local", "--run", str(run), *RATE, *map(str, args)],
            env={**CLEAN, **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.key = (env or {}).get("TNK_GATEWAY_ADMIN_KEY") or (run / "admin.key").read_text().strip()

    def call(self, method, path, body=None, key=None):
        """The status, the document and the headers of an answer."""
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(),
                                         {"Authorization": f"Bearer {key or self.key}"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=100) as answer:
                return answer.status, json.load(answer), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, json.load(error), error.headers

    def begin(self, group, **more):
        return self.call("POST", "/tnk/sessions", {"group": group, "may_reward": True, **more})

    def open(self, group, **more):
        """A session, as soon as it may begin."""
        end = time.monotonic() + 100
        while time.monotonic() < end:
            status, doc, headers = self.begin(group, **more)
            if status == 503 and self.process.poll() is not None:
                raise ConnectionError("the run has ended")
            if status != 503:
                check(status == 200, f"{self.run.name}: a session of {group}", (status, doc))
                return doc
            check(headers["Retry-After"] == "1", "it may ask again", headers)
            time.sleep(0.02)
        raise TimeoutError(doc)

    def sample(self, session, text="Say:"):
        status, doc, _ = self.call("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": text}], "max_tokens": 16, "seed": hash(session["id"]) & 0xffff},
            session["key"])
        check(status == 200, f"{self.run.name}: an answer", (status, doc))
        return doc["choices"][0]["message"]["content"]

    def reward(self, session, value, key=None):
        status, doc, _ = self.call("POST", f"/s/{session['session']}/tnk/reward", {"reward": value},
                                   key or session["key"])
        check(status == 200, f"{self.run.name}: a reward", (status, doc))

    def finish(self, session, key=None):
        return self.call("DELETE", "/tnk/sessions/" + session["id"], key=key or session["key"])

    def play(self, session, value=None):
        """Sample, unless it has, post a reward, and end the session."""
        said = self.sample(session)
        self.reward(session, vowels(said) if value is None else value)
        status, doc, _ = self.finish(session)
        check(status == 200, f"{self.run.name}: the end of a session", (status, doc))

    def group(self, name, n=2):
        for i in range(n):
            self.play(self.open(name), i)

    def steps(self, n):
        end = time.monotonic() + 100
        while len(lines(self.run)) < n and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        if len(lines(self.run)) < n:
            self.process.terminate()
            check(False, f"{self.run.name}: {n} steps", (self.process.communicate(), lines(self.run)))

    def end(self, number=None):
        if number is not None:
            self.process.send_signal(number)
        try:
            out = self.process.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out = self.process.communicate()
        return subprocess.CompletedProcess([], self.process.returncode, *out)


def agents(folder):
    """Many agents at once. Without --max-off-policy every session has the weights of its step."""
    for most in (0, 1):
        served = Served(folder / f"agents{most}", "--groups", 2, "--group-size", 4, "--steps", 4, "--max-off-policy", most,
                        "--verbose")
        mode = stat.S_IMODE((served.run / "admin.key").stat().st_mode)
        check(mode == 0o600 and len(served.key) == 48, "the admin key is a file of this user", oct(mode))

        def agent(group, served=served, most=most):
            """All sessions of a group, or of one after the other until the run ends."""
            n = 0
            while n < 4 or (most > 0 and served.process.poll() is None):
                with contextlib.suppress(OSError, http.client.HTTPException) if most > 0 else contextlib.nullcontext():
                    served.play(served.open(f"{group}-{n // 4}"))
                n += 1
            return n

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            n_left = list(pool.map(agent, [f"task{i}" for i in range(8)]))
        got = served.end()
        rows = lines(served.run)
        check(got.returncode == 0 and len(n_left) == 8 and [row["step"] for row in rows] == [1, 2, 3, 4], f"{most}: each step once",
              (got, rows))
        check(all(row["failed"] == 0 and row["staleness/max"] <= most and (most > 0 or row["stale_groups"] == 0) for row in rows),
              f"{most}: no session is too old", rows)
        check(most == 1 or all(abs(row["kl"]) < 1e-4 for row in rows), "the samples of a step are of its weights", rows)
        check(served.key not in got.stdout + got.stderr and '"admin' not in (served.run / "config.json").read_text(),
              "the key is in no log")


def late(folder):
    """A group that is complete `lag` steps after its samples is trained, or left out and counted."""
    for lag in range(3):
        served = Served(folder / f"late{lag}", "--groups", 1, "--group-size", 2, "--steps", lag + 1, "--max-off-policy", 1)
        slow = [served.open("slow") for _ in range(2)]
        for session in slow:
            served.sample(session)
        for step in range(lag):
            served.group(f"quick{step}")
            served.steps(step + 1)
        for i, session in enumerate(slow):
            served.reward(session, i, served.key)
            check(served.finish(session, served.key)[0] == 200, "an administrator ends it")
        if lag > 1:
            served.group("slow")
        got = served.end()
        rows = lines(served.run)
        check(got.returncode == 0 and [(row["stale_groups"], row["staleness/max"]) for row in rows[-1:]] ==
              [(1, 0) if lag > 1 else (0, lag)], f"{lag} steps late", (got, rows))


def failing(folder):
    """A session that fails is counted and left out, and its place is free again."""
    served = Served(folder / "failing", "--groups", 1, "--group-size", 2, "--steps", 2, "--max-failed", 1)
    for step, (name, how) in enumerate((("silent", ()), ("unrewarded", ("sample",)))):
        bad = served.open("one")
        for part in how:
            getattr(served, part)(bad)
        check(served.finish(bad)[0] == 200, "it ends")
        served.group("one")
        served.steps(step + 1)
        row = lines(served.run)[-1]
        check(row["failed"] == row[f"failed/{name}"] == 1, f"{name}: counted", row)
    got = served.end()
    check(got.returncode == 0 and "1 of 3 environments have failed" in got.stderr, "and trained without it", got)
    served = Served(folder / "slow", "--groups", 1, "--group-size", 2, "--steps", 1, "--max-failed", 1,
                    "--environment-timeout", 1)
    served.sample(served.open("one"))  # and it never ends
    end = time.monotonic() + 100
    while served.begin("one", session="x")[0] == 200 and time.monotonic() < end:
        break
    got = served.end()
    check(got.returncode == 1 and "2 timed out" in got.stderr and "did not end within 1 s" in got.stderr and
          "--max-failed is 1" in got.stderr, "sessions that never end", got)
    served = Served(folder / "alone", "--groups", 1, "--group-size", 2, "--steps", 1, "--max-failed", 0,
                    "--environment-timeout", 2)
    served.play(served.open("one"))
    got = served.end()
    check(got.returncode == 1 and "has a group that was not complete within 2 s" in got.stderr, "a session without a group",
          got)


def refused(folder):
    """Each request that is not permitted, or for which there is no capacity."""
    served = Served(folder / "refused", "--groups", 1, "--group-size", 3, "--steps", 1, "--parallel", 2, "--max-failed", 2,
                    env={"TNK_GATEWAY_ADMIN_KEY": "the-key-of-the-test"})
    check(not (served.run / "admin.key").exists(), "no key is made if there is one")
    one = served.open("a", session="mine")
    other = served.open("a", may_reward=False)
    for name, got, status, words in (
            ("another key", served.call("POST", "/tnk/sessions", {"group": "a"}, "other"), 401, ""),
            ("a key of a session", served.call("POST", "/tnk/sessions", {"group": "a"}, one["key"]), 403, "admin key"),
            ("no group", served.call("POST", "/tnk/sessions", {}), 400, '"group" is missing'),
            ("an empty group", served.begin(""), 400, '"group" is missing'),
            ("a long group", served.begin("x" * 129), 400, '"group" is missing'),
            ("a group of another type", served.begin(7), 400, '"group" is unknown, of another type'),
            ("an unknown member", served.begin("a", task=7), 400, '"task" is unknown'),
            ("a session that exists", served.begin("a", session="mine"), 409, "exists: use another"),
            ("a long name", served.begin("a", session="x" * 96), 409, "at most 95"),
            ("--parallel", served.begin("a"), 503, "as many sessions as --parallel"),
            ("the end of another session", served.finish(other, one["key"]), 403, "admin key"),
            ("the end without a right", served.finish(other, other["key"]), 403, "admin key"),
            ("the list", served.call("GET", "/tnk/sessions", key=one["key"]), 403, "admin key"),
            ("a rotation", served.call("POST", f"/tnk/sessions/{one['id']}/rotate", {}, one["key"]), 403, "admin key")):
        check(got[0] == status and words in json.dumps(got[1], ensure_ascii=False).replace('\\"', '"') and
              ("Retry-After" in got[2]) == (status == 503), f"refused: {name}", (got[0], got[1]))
    served.play(one)
    check(served.begin("b")[0] == 503 and "the groups of the step have begun" in json.dumps(served.begin("b")[1]),
          "as many groups as a step has", served.begin("b"))
    check(served.begin("a", session="mine")[0] == 409, "not even when it has ended")
    served.sample(other)
    served.reward(other, 1, served.key)
    check(served.finish(other, served.key)[0] == 200 and served.finish(other, served.key)[0] == 404, "it ends once")
    status, doc, _ = served.call("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, other["key"])
    check(status == 401, "its key has ended", doc)
    served.play(served.open("a"), 2)
    got = served.end()
    check(got.returncode == 0 and len(lines(served.run)) == 1, "it trains", got)
    for args, words in ((("--environment", "x"), "either --environment or --url"),
                        (("--url", "https://127.0.0.1:1"), "--url takes http://ADDRESS:PORT"),
                        (("--url", "http://localhost:1"), "--url takes http://ADDRESS:PORT"),
                        (("--admin-key", "a", "--admin-key-file", "b"), "exclude each other")):
        got = tnk("rl", "--url", "http://127.0.0.1:0", "--local", "--run", folder / "never", "--steps", 1, *args)
        check(got.returncode == 2 and words in got.stderr and not (folder / "never").exists(), f"refused: {words}", got)
    got = tnk("rl", "--environment", "x", "--admin-key", "a", "--local", "--run", folder / "never", "--steps", 1)
    check(got.returncode == 2 and "need --url" in got.stderr, "an admin key for nobody", got)


def interrupted(folder):
    """Ctrl-C and a kill with open sessions keep the steps that were saved. The same command continues."""
    args = ("--groups", 1, "--group-size", 2, "--steps", 4, "--save-every", 2, "--max-off-policy", 1)
    run = folder / "interrupted"
    served = Served(run, *args)
    served.group("a")
    served.steps(1)
    left = served.open("b")
    served.sample(left)
    got = served.end(signal.SIGINT)
    check(got.returncode == 130 and "The same command continues it" in got.stderr, "Ctrl-C", got)
    key = served.key
    served = Served(run, *args)
    check(served.key == key, "the admin key stays", served.key)
    status, doc, _ = served.finish(left)
    check(status == 401, "a session of the process before has ended", doc)
    served.group("b")
    served.steps(2)
    served.sample(served.open("c"))
    served.end(signal.SIGKILL)
    served = Served(run, *args)
    # The second step may not have been saved.
    n = 0
    while served.process.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, doc, _ = served.begin("c")
            if status == 200:
                served.play(doc, n)
                n += 1
            else:
                time.sleep(0.02)
    got = served.end()
    check(got.returncode == 0 and [row["step"] for row in lines(run)] == [1, 2, 3, 4] and "resuming after step " in got.stderr,
          "each step once", (got, lines(run)))


with tempfile.TemporaryDirectory() as tmp:
    for case in (agents, late, failing, refused, interrupted):
        top = pathlib.Path(tmp, case.__name__)
        top.mkdir()
        if os.environ.get("ONLY", case.__name__) == case.__name__:
            case(top)
plan()
