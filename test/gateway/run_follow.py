#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk gateway --datums --follow: examples of sessions while they are recorded.

usage: run_follow.py TNK_COMMAND

The record is a file, then Valkey or Redis if there is one. Each example is
printed once, whole, and equals what --datums prints. Output is TAP, see
test/support/tap.py.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from gateway import CLEAN, Client, gateway, local
from store import SERVER, Store
from tap import check, plan, skip

TNK = sys.argv[1]


class Follower:
    """The command, with its output on a pipe."""

    def __init__(self, record, *args):
        self.process = subprocess.Popen(
            [TNK, "gateway", "--datums", str(record), "--follow", *args], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN)

    def next(self):
        line = self.process.stdout.readline()
        if not line:
            check(False, "the command goes on", self.end(None))
        return json.loads(line)

    def end(self, number):
        """Returns the status, the rest of the output, and the errors."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err.decode()


def exported(record, *args):
    done = subprocess.run([TNK, "gateway", "--datums", str(record), *args], env=CLEAN, capture_output=True,
                          timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def numbers(example):
    return [turn["turn"] for turn in example["turns"]]


def advantages(example):
    return sorted({x for x in example["loss_fn_inputs"]["advantages"]["data"] if x != 0})


def play(client, session, talk, reward):
    """One turn of a conversation, and its reward."""
    talk.append({"role": "user", "content": f"question {len(talk)}"})
    status, a = client.chat(talk, path=f"/s/{session}/v1/chat/completions")
    assert status == 200, a
    talk.append(a["choices"][0]["message"])
    assert client.post("/tnk/reward", {"id": a["id"], "reward": reward})[0] == 200
    return int(a["id"].split("-")[1])


def sessions(name, service, record):
    """What is there before, what comes, and a session that continues."""
    with gateway(TNK, service, "--record", record) as g:
        client = Client(g.url)
        talks = {"old": [], "new": []}
        first = play(client, "old", talks["old"], 1)
        follower = Follower(record, "--quiet-s", "0", "--rewarded")
        one = follower.next()
        check(numbers(one) == [first] and one == exported(record, "--rewarded")[0],
              f"{name}: a session of before is printed as --datums prints it", one)
        second = play(client, "new", talks["new"], 2)
        two = follower.next()
        check(numbers(two) == [second] and two["session"] == "new", f"{name}: a new session is printed", two)
        third = play(client, "old", talks["old"], 3)
        three = follower.next()
        check(numbers(three) == [first, third], f"{name}: a session that continues is printed again", three)
        check(advantages(three) == [3], f"{name}: what was printed has no advantage any more", three)
        status, out, err = follower.end(signal.SIGTERM)
        check((status, out, err) == (0, b"", ""), f"{name}: nothing is printed twice", (status, out, err))


def restarted(name, service, record, *args):
    """A follower that starts again prints what is new since then."""
    with gateway(TNK, service, "--record", record) as g:
        client, talk = Client(g.url), []
        first = play(client, "a", talk, 1)
        play(client, "b", [], 1)
        follower = Follower(record, "--quiet-s", "0", "--rewarded", *args)
        check({follower.next()["session"] for _ in range(2)} == {"a", "b"}, f"{name}: two sessions are printed")
        follower.end(signal.SIGTERM)
        play(client, "c", [], 1)
        second = play(client, "a", talk, 3)
        follower = Follower(record, "--quiet-s", "0", "--rewarded", *args)
        got = sorted((follower.next() for _ in range(2)), key=lambda e: e["session"])
        check([e["session"] for e in got] == ["a", "c"], f"{name}: after a restart, what is new", got)
        check(numbers(got[0]) == [first, second] and advantages(got[0]) == [3],
              f"{name}: a session goes on after a restart", got[0])
        # A killed one may print something again, and it loses nothing.
        follower.process.kill()
        follower.end(None)
        play(client, "d", [], 1)
        follower = Follower(record, "--quiet-s", "0", "--rewarded", *args)
        got = [follower.next()["session"]]
        while got[-1] != "d":
            got.append(follower.next()["session"])
        status, out, err = follower.end(signal.SIGTERM)
        check((status, out, err) == (0, b"", "") and len(got) < 4, f"{name}: one that was killed goes on", got)


def state_files(folder, text):
    """What is no file of --state is refused, and a cut line is cut off."""
    record = pathlib.Path(folder) / "state.record"
    record.write_bytes(text)
    leaves = [numbers(e)[-1] for e in exported(record)]
    state = pathlib.Path(folder) / "state"
    for what, data, why in (("text", b"hello\n", "line 1 is not the number of a turn"),
                            ("a number that is too long", b"1\n" + b"1" * 30 + b"\n", "line 2 is not the number"),
                            ("zero", b"1\n0\n", "line 2 is not the number"),
                            ("an empty line", b"\n", "line 1 is not the number"),
                            ("a word without a line feed", b"hello", "its last line is not the number"),
                            ("a folder", None, "Is a directory")):
        if data is None:
            state.unlink()
            state.mkdir()
        else:
            state.write_bytes(data)
        status, out, err = Follower(record, "--quiet-s", "0", "--state", state).end(None)
        check(status == 6 and out == b"" and why in err and str(state) in err, f"{what} is no state", (status, err))
    state.rmdir()
    state.write_bytes(f"{leaves[0]}\n{leaves[1]}"[:-1].encode())
    follower = Follower(record, "--quiet-s", "0", "--state", state)
    got = [numbers(follower.next())[-1] for _ in leaves[1:]]
    follower.end(signal.SIGTERM)
    check(sorted(got) == sorted(leaves[1:]), "a cut line is not taken for a number", (got, leaves))
    check(sorted(map(int, state.read_text().split())) == sorted(leaves), "the state has all of them", state.read_text())


def marks(store, service):
    """What --datums has printed is marked once, unless that is not wanted."""
    url = store.url("marks")
    with gateway(TNK, service, "--record", url) as g:
        client = Client(g.url)
        for session in "ab":
            play(client, session, [], 1)
        client.chat("hi", path="/s/unrewarded/v1/chat/completions")

        def state():
            return (sorted(set(store.ask("HKEYS", "tnk:{marks}:exported"))),
                    int(store.ask("XLEN", "tnk:{marks}:lines")))

        _, n = state()
        exported(url, "--no-marks")
        check(state() == ([], n), "--no-marks marks nothing", state())
        exported(url, "--rewarded")
        check(state() == (["a", "b"], n + 2), "what was printed is marked", state())
        for _ in range(2):
            check(len(exported(url)) == 3, "--datums prints all of it each time")
        check(state() == (["a", "b", "unrewarded"], n + 3), "each mark is written once", state())
        follower = Follower(url, "--quiet-s", "0")
        play(client, "c", [], 1)
        check(follower.next()["session"] == "c", "--follow prints what has no mark")
        check(follower.end(signal.SIGTERM)[1] == b"", "and nothing else")
        follower = Follower(url, "--quiet-s", "0", "--no-marks")
        got = {follower.next()["session"] for _ in range(4)}
        check(got == {"a", "b", "c", "unrewarded"}, "with --no-marks it prints everything", got)
        follower.end(signal.SIGTERM)
        play(client, "a", [], 2)
        changed = [store.ask("HGET", f"tnk:{{marks}}:{key}", "a") for key in ("changed", "exported")]
        check(changed[0] != changed[1], "a session with a new turn is not exported any more", changed)


def removed(store, service):
    """A session that is removed before it was printed: the follower says so."""
    url = store.url("removed")
    with gateway(TNK, service, "--record", url) as g:
        client = Client(g.url)
        client.chat("hi", path="/s/a/v1/chat/completions")
        play(client, "b", [], 1)
        follower = Follower(url, "--quiet-s", "0", "--rewarded")
        check(follower.next()["session"] == "b", "a session without a reward is not printed")
        store.ask("ZADD", "tnk:{removed}:sessions", 1, "a")
        with gateway(TNK, service, "--record", url, "--keep-age-s", "60"):
            said = follower.process.stderr.readline().decode()
        check("the session a was removed before all of it was printed" in said, "a removed session is reported", said)
        status, out, err = follower.end(signal.SIGTERM)
        check((status, out, err) == (0, b"", ""), "and not printed", (status, out, err))


def quiet(name, service, record):
    """A session that has not ended is not printed."""
    with gateway(TNK, service, "--record", record) as g:
        play(Client(g.url), "s", [], 1)
        hasty, patient = Follower(record, "--quiet-s", "0"), Follower(record)
        hasty.next()
        for follower, number in ((hasty, signal.SIGINT), (patient, signal.SIGTERM)):
            if follower is patient:
                # It has read the record when it catches signals; it has printed nothing then.
                while not caught(follower.process.pid):
                    pass
            status, out, err = follower.end(number)
            check((status, out, err) == (0, b"", ""), f"{name}: {number.name} ends it", (status, out, err))


def caught(pid):
    status = pathlib.Path(f"/proc/{pid}/status")
    if not status.exists():
        return True
    mask = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
    return int(mask.split()[1], 16) >> (signal.SIGTERM - 1) & 1


def closed(name, service, record):
    """A closed pipe ends it, with and without something to print."""
    with gateway(TNK, service, "--record", record) as g:
        for what in ("idle", "busy"):
            play(Client(g.url), f"{what}1", [], 1)
            follower = Follower(record, "--quiet-s", "0")
            follower.next()
            follower.process.stdout.close()
            if what == "busy":
                play(Client(g.url), f"{what}2", [], 1)
            status = follower.process.wait(60)
            with follower.process.stderr as file:
                err = file.read()
            check(status in (141, -signal.SIGPIPE) and err == b"", f"{name}: a closed pipe ends it, {what}",
                  (status, err))


def half_lines(record, text):
    """A line is read when it is complete, and a cut one not at all."""
    lines = text.splitlines(keepends=True)
    path = pathlib.Path(record)
    path.write_bytes(lines[0][:20])
    follower = Follower(record, "--quiet-s", "0")
    got = []
    for n, line in enumerate(lines):
        with open(path, "r+b") as file:
            whole = b"".join(lines[:n])
            # As a gateway that starts again cuts off what a killed one has left.
            file.seek(len(whole))
            file.truncate()
            for piece in (line[:len(line) // 2], line[len(line) // 2:]):
                file.write(piece)
                file.flush()
            file.write(lines[0][:20])
        if b'"type":"turn"' in line[:20]:
            got.append(follower.next())
    check([numbers(e)[-1] for e in got] == sorted(numbers(e)[-1] for e in got) and len(got) > 1,
          "lines that come in halves are read once", got)
    return follower


def broken(folder, text):
    """Each way in which a file is not the same any more has its message."""
    table = (("shorter", lambda p: os.truncate(p, 10), "the file has become shorter than what was read"),
             ("removed", lambda p: p.unlink(), "the file was removed or replaced"),
             ("replaced", lambda p: p.with_suffix(".new").write_bytes(text) and p.with_suffix(".new").rename(p),
              "the file was removed or replaced"),
             ("malformed", lambda p: p.open("ab").write(b"no JSON\n"), "is not JSON"))
    for what, change, why in table:
        path = pathlib.Path(folder) / f"broken.{what}"
        path.write_bytes(text)
        follower = Follower(path, "--quiet-s", "0")
        follower.next()
        change(path)
        status, out, err = follower.end(None)
        check(status == 6 and why in err and str(path) in err, f"a file that is {what}", (status, err))


def slow_reader(folder):
    """Examples that do not fit into a pipe. While the second one is being
    written, the command gets a signal, or the file is cut."""
    ids = [1] * 40000
    text = b"".join(json.dumps({"type": "turn", "turn": n, "session": "a", "key": str(n), "version": 1, "prompt": ids,
                                "sampled": [2]}, separators=(",", ":")).encode() + b"\n" for n in (1, 2, 3, 4))
    for what in ("a signal", "a cut file"):
        path = pathlib.Path(folder) / f"slow.{what}"
        path.write_bytes(text)
        follower = Follower(path, "--quiet-s", "0")
        follower.next()
        if what == "a cut file":
            os.truncate(path, 10)
        status, out, err = follower.end(signal.SIGTERM if what == "a signal" else None)
        lines = [json.loads(line) for line in out.splitlines()]
        check(len(lines) < 3 and (not out or out.endswith(b"\n")), f"{what} leaves no half example", (len(lines), err))
        check((status, err) == (0, "") if what == "a signal" else "shorter than what was read" in err,
              f"{what} is what ends it", (status, err))


def away(store, service):
    """A store that is killed and comes back: the follower continues. One that
    has lost its data ends it."""
    url = store.url("away")
    with gateway(TNK, service, "--record", url) as g:
        client = Client(g.url)
        play(client, "a", [], 1)
        follower = Follower(url, "--quiet-s", "0", "--rewarded")
        check(follower.next()["session"] == "a", "an example before the store is killed")
        store.kill()
        store.start()
        play(client, "b", [], 1)
        check(follower.next()["session"] == "b", "one after it is back")
        before = store.ask("GET", "tnk:{away}:writers")
        check(before == "1", "a follower is no writer", before)
    store.ask("FLUSHALL")
    store.ask("CLIENT", "KILL", "TYPE", "normal")
    status, out, err = follower.end(None)
    check(status != 0 and out == b"" and "has lost the record" in err and "canary" not in err,
          "a store that has lost the record ends it", (status, out, err))


def two_gateways(store, service):
    """Everything that two gateways record is printed once."""
    url = store.url("two")
    options = ("--record", url)
    with gateway(TNK, service, *options) as one, gateway(TNK, service, *options) as two:
        follower = Follower(url, "--quiet-s", "0", "--rewarded")
        expected = set()
        for k in range(8):
            expected.add(play(Client((one, two)[k % 2].url), f"s{k}", [], 1))
        got = [numbers(follower.next()) for _ in range(8)]
        check({n for (n,) in got} == expected, "both gateways' sessions are printed", (got, expected))
        status, out, err = follower.end(signal.SIGTERM)
        check((status, out) == (0, b""), "and no more", (status, out, err))


def options():
    for args, why in ((("--follow",), "--follow needs --datums"),
                      (("--datums", "x", "--quiet-s", "1"), "--quiet-s needs --follow"),
                      (("--datums", "x", "--state", "y"), "--state needs --follow"),
                      (("--datums", "x", "--no-marks"), "--no-marks needs --datums valkey://"),
                      (("--atif", "x", "--follow"), "--follow needs --datums")):
        done = subprocess.run([TNK, "gateway", *args], env=CLEAN, capture_output=True, text=True, timeout=60)
        check(done.returncode == 2 and why in done.stderr, why, done)


def main():
    options()
    with tempfile.TemporaryDirectory() as folder, local(TNK) as service:
        where = pathlib.Path(folder)
        for test in (sessions, quiet, closed):
            test("a file", service, where / test.__name__)
        text = (where / "sessions").read_bytes()
        follower = half_lines(where / "halves", text)
        check(follower.end(signal.SIGTERM)[:2] == (0, b""), "and printed once")
        broken(folder, text)
        restarted("a file", service, where / "restarted", "--state", where / "restarted.state")
        state_files(folder, text)
        slow_reader(folder)
        if SERVER is None:
            skip("a shared record", "there is no valkey-server or redis-server")
        else:
            with Store(folder) as store:
                for test in (sessions, quiet, closed):
                    test("a store", service, store.url(test.__name__))
                restarted("a store", service, store.url("restarted"))
                restarted("a store with a state", service, store.url("state"), "--state", where / "store.state")
                marks(store, service)
                removed(store, service)
                two_gateways(store, service)
                away(store, service)
    plan()


main()
