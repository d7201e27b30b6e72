#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several gateways with one record in Valkey or Redis.

usage: run_shared.py TNK_COMMAND

Conversations change the gateway at every turn. One gateway and the store are
killed meanwhile. Each answered turn is recorded once and as it was drawn, and
continues the tokens of the one before. TNK_TEST_AGENTS: how many agents (8).
Output is TAP, see test/support/tap.py.
"""
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from fleet import check_fleet
from gateway import Client, gateway, local
from ports import reserve
from store import PASSWORD, SERVER, Store
from tap import check, plan, skip

TNK = sys.argv[1]
AGENTS = int(os.environ.get("TNK_TEST_AGENTS", 8))
TURNS = 6


class Agent(threading.Thread):
    """Asks each question at another gateway than the one before. A question
    whose gateway is gone is asked at the next one."""

    def __init__(self, name, k, fleet, half):
        super().__init__()
        self.name, self.at, self.fleet, self.half = name, k, fleet, half
        self.seen, self.rewards, self.wrong = {}, {}, []

    def hop(self, path, body):
        for _ in range(4 * len(self.fleet)):
            self.at += 1
            client = Client(self.fleet[self.at % len(self.fleet)].url)
            try:
                status, a = client.post(f"/s/{self.name}{path}", body)
                if status == 200:
                    return a
                self.wrong.append((status, a))
            except (OSError, http.client.HTTPException):
                pass
            finally:
                client.close()
        raise RuntimeError(self.wrong)

    def run(self):
        talk = []
        for n in range(TURNS):
            if n == TURNS // 2:
                self.half.wait()
            talk.append({"role": "user", "content": f"{self.name} asks {n}"})
            a = self.hop("/v1/chat/completions", {"model": "m", "max_tokens": 6, "messages": talk})
            number = int(a["id"].split("-")[1])
            self.seen[number] = n
            talk.append(a["choices"][0]["message"])
            for value in (n + 0.5, n):
                self.hop("/tnk/reward", {"id": a["id"], "reward": value})
            self.rewards[number] = n


def fleet_of(n, store, service, folder, log):
    """Conversations over n gateways, of which one is killed half-way; and the
    store, which starts again with its file."""
    name = f"fleet{n}"
    logs = [pathlib.Path(folder) / f"{name}.{k}.log" for k in range(n)]
    commands = [gateway(TNK, service, "-v", "--record", store.url(name), log=logs[k]) for k in range(n)]
    half = threading.Event()
    fleet = []
    try:
        for command in commands:
            fleet.append(command.__enter__())
        agents = [Agent(f"{name}agent{k}", k, fleet, half) for k in range(AGENTS)]
        for agent in agents:
            agent.start()
        fleet[0].kill()
        store.kill()
        store.start()
        half.set()
        for agent in agents:
            agent.join()
        wrong = [a.wrong for a in agents if a.wrong]
        check(all(len(a.seen) == TURNS for a in agents), f"{n} gateways answer after two kills", wrong)
    finally:
        half.set()
        for command in fleet:
            command.__exit__()
    check_fleet(TNK, store, agents, name, log, folder)
    said = "".join(path.read_text() for path in logs)
    check("canary" not in said, "the password is in no log", said)


def stopped(store, service):
    """A store that is stopped holds the requests. They go on with it."""
    answers = []
    with gateway(TNK, service, "--record", store.url("stopped")) as g:
        asker = threading.Thread(target=lambda: answers.append(Client(g.url).chat("hi")[0]))
        store.process.send_signal(signal.SIGSTOP)
        try:
            asker.start()
            while Client(g.url).ask("GET", "/readyz")[0] == 200:
                asker.join(0.05)
            check(not answers, "nothing is answered without the store", answers)
            check(Client(g.url).ask("GET", "/healthz")[0] == 200, "the gateway needs no restart")
        finally:
            store.process.send_signal(signal.SIGCONT)
        asker.join()
    check(answers == [200], "the request is answered when the store is back", answers)


# What a store can be, how it becomes so and is well again, and what is said.
ILL = {"full": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "the error OOM"),
       "read-only": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "the error READONLY"),
       "slow": (("CLIENT", "PAUSE", "2000", "ALL"), None, None)}
# Requests that only count tokens: nothing of them is recorded.
COUNTS = {f"{session}/v1/{path}{slash}": {"model": "m", key: [{"role": "user", "content": "hi"}]}
          for path, key in (("messages/count_tokens", "messages"), ("responses/input_tokens", "input"))
          for session in ("", "/s/a") for slash in ("", "/")}


def ill(store, service, folder):
    """A store that is ill holds requests. Nothing is answered that is not recorded."""
    for what, (begin, end, why) in ILL.items():
        log = pathlib.Path(folder) / f"{what}.log"
        answers, others = [], []
        with gateway(TNK, service, "--record", store.url(what), log=log) as g:
            client = Client(g.url)
            client.chat("hi", path="/s/a/v1/chat/completions")
            before = len(store.lines(what))
            began = time.monotonic()
            store.ask(*begin)
            asker = threading.Thread(target=lambda at=g.url, to=answers: to.append(
                Client(at).chat("hi", path="/s/b/v1/chat/completions")))
            asker.start()
            if why is None:
                asker.join()
                check(time.monotonic() - began >= 2, f"a {what} store is waited for", answers)
            else:
                while why not in log.read_text() or client.ask("GET", "/readyz")[0] == 200:
                    asker.join(0.02)
                check(not answers, f"a {what} store holds the request", answers)
                drawn = pathlib.Path(folder) / "drawn"
                n_drawn = len(drawn.read_text().splitlines())
                # The session of requests that name none is sampled without a look at the store.
                other = threading.Thread(target=lambda at=g.url, to=others: to.append(Client(at).chat("hi")[0]))
                other.start()
                for _ in range(2):  # each of them waits for a new connection
                    assert client.ask("GET", "/tnk/datums")[0] == 200
                check(not others and len(drawn.read_text().splitlines()) == n_drawn,
                      f"a {what} store: nothing more is sampled", others)
                check(client.ask("GET", "/healthz")[0] == 200, f"a {what} store needs no restart")
                with ThreadPoolExecutor(len(COUNTS)) as pool:
                    counted = list(pool.map(lambda item, at=g.url: Client(at).post(*item)[0], COUNTS.items()))
                check(counted == [200] * len(COUNTS) and not answers and not others,
                      f"a {what} store: tokens are counted", (counted, answers, others))
                store.ask(*end)
                asker.join()
                other.join()
                check(others == [200], f"a {what} store that is well again answers the other request", others)
            check(answers[0][0] == 200, f"a {what} store that is well again answers", answers)
            turns = [line for line in store.lines(what)[before:]
                     if '"type":"turn"' in line and '"session":"b"' in line]
            check(len(turns) == 1, f"a {what} store has the turn once", turns)
            if why is not None:
                told = [log.read_text().count(text) for text in (why, "the store answers again")]
                check(told == [1, 1], f"a {what} store: the log says so once", log.read_text())
        check("canary" not in log.read_text(), f"a {what} store: the log has no password", log.read_text())


def script_of(store, service):
    """The digest of the script that appends lines."""
    with socket.create_connection(("127.0.0.1", store.port), timeout=60) as s:
        file = s.makefile("rwb")
        file.write(f"AUTH \"{PASSWORD}\"\r\nMONITOR\r\n".encode())
        file.flush()
        assert [file.readline() for _ in range(2)] == [b"+OK\r\n"] * 2
        with gateway(TNK, service, "--record", store.url("script")) as g:
            Client(g.url).chat("hi")
        for line in file:
            found = re.search(rb'"(?i:EVALSHA)" "([0-9a-f]{40})" "8"', line)
            if found:
                return found[1].decode()
    return None


def order(store, service):
    """The store appends the n-th line of a writer once, and only behind the one before it, unless
    the writer says that this was confirmed."""
    sha = script_of(store, service)
    keys = [f"tnk:{{order}}:{key}" for key in ("lines", "counts", "removed", "sessions", "changed", "of:s", "open:s",
                                                  "owners")]
    lines, counts, removed = keys[:3]
    wrong = []
    for last in (None, 1, 4):
        for n in (1, 2, 4, 5, 6):
            for first in (0, 1):
                for session in ("", "s", "removed"):
                    for is_full in (0, 1):
                        store.ask("DEL", *keys)
                        store.ask("ZADD", removed, 1, "removed")
                        store.ask("HSET", keys[7], 7, "token")
                        if last is not None:
                            store.ask("HSET", counts, 7, last)
                        store.ask("CONFIG", "SET", "maxmemory", is_full)
                        try:
                            got = store.ask("EVALSHA", sha, 8, *keys, 7, n, "{}", session, "c", 0, "token", first)
                        except ValueError as error:
                            got = "full" if b"-OOM" in error.args[0] else error
                        store.ask("CONFIG", "SET", "maxmemory", 0)
                        has = last or 0
                        is_new = n > has
                        if n > has + 1 and not first:
                            expected = ("0", 0, last)
                        elif is_new and is_full:
                            expected = ("full", 0, last)
                        else:
                            is_there = session != "removed"
                            expected = ("1" if is_there else None, int(is_new and is_there), n if is_new else last)
                        at = store.ask("HGET", counts, 7)
                        got = (got, int(store.ask("XLEN", lines)), None if at is None else int(at))
                        if got != expected:
                            wrong.append((last, n, first, session, is_full, got, expected))
    check(not wrong, "the store keeps the order of a writer's lines", wrong)


def flushed(store, service):
    """A store that has lost its scripts gets them again."""
    with gateway(TNK, service, "--record", store.url("flushed")) as g:
        client = Client(g.url)
        for k in range(3):
            store.ask("SCRIPT", "FLUSH")
            check(client.chat("hi", path=f"/s/{k}/v1/chat/completions")[0] == 200, "a request is answered without scripts")
    turns = [line for line in store.lines("flushed") if '"type":"turn"' in line]
    check(len(turns) == 3, "its turn is stored", turns)


def lost(store, service):
    """A store that has lost its data is not used any more: numbers would repeat."""
    with gateway(TNK, service, "--record", store.url("lost")) as g:
        check(Client(g.url).chat("hi")[0] == 200, "a record begins")
        store.ask("FLUSHALL")
        store.ask("CLIENT", "KILL", "TYPE", "normal")
        while Client(g.url).ask("GET", "/healthz")[0] == 200:
            pass
        status, a = Client(g.url).chat("more")
        check(status == 503, "nothing is sampled when the record is lost", a)


def begun_anew(store, service):
    """A store loses its data while a gateway does not run, and another gateway begins the record
    again. The first one does not write with a number of the second."""
    for is_cut in (0, 1):
        name = f"anew{is_cut}"
        store.ask("FLUSHALL")
        with gateway(TNK, service, "--record", store.url(name)) as old:
            Client(old.url).chat("old", path="/s/a/v1/chat/completions")
            os.kill(old.process.pid, signal.SIGSTOP)
            store.ask("FLUSHALL")
            if is_cut:
                store.ask("CLIENT", "KILL", "TYPE", "normal")
            with gateway(TNK, service, "--record", store.url(name)) as new:
                Client(new.url).chat("new", path="/s/b/v1/chat/completions")
                os.kill(old.process.pid, signal.SIGCONT)
                status = Client(old.url).chat("more", path="/s/a/v1/chat/completions")[0]
                check(status == 503, f"{name}: the old gateway answers nothing", status)
                while Client(old.url).ask("GET", "/healthz")[0] == 200:
                    pass
                status = Client(new.url).chat("more", path="/s/b/v1/chat/completions")[0]
                check(status == 200, f"{name}: the new one works", status)
                turns = [line for line in store.lines(name) if '"type":"turn"' in line]
                check(len(turns) == 2 and not any('"session":"a"' in line for line in store.lines(name)),
                      f"{name}: the store has the lines of the new one only", store.lines(name))


def copied(store, folder, what):
    """Do it, and let the store come back with an older copy of its file, of before."""
    file, copy = pathlib.Path(folder) / "appendonlydir", pathlib.Path(folder) / "copy"
    if not file.exists():
        file = pathlib.Path(folder) / "appendonly.aof"
    store.kill()
    subprocess.run(["cp", "-r", file, copy], check=True)
    store.start()
    what()
    store.kill()
    subprocess.run(["rm", "-r", file], check=True)
    copy.rename(file)
    store.start()


def examples(url):
    got = subprocess.run([TNK, "gateway", "--datums", url], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in got.stdout.splitlines()], got.stderr


def turns_in(store, name):
    return [json.loads(line) for line in store.lines(name) if line.startswith('{"type":"turn"')]


class Talk:
    """A conversation of one session with any gateway. Returns the ids of its answers."""

    def __init__(self, session):
        self.session, self.messages = session, []

    def ask(self, g):
        self.messages.append({"role": "user", "content": f"{self.session} {len(self.messages)}"})
        status, a = Client(g.url).post(f"/s/{self.session}/v1/chat/completions",
                                       {"model": "m", "max_tokens": 4, "messages": self.messages})
        if status != 200:
            raise RuntimeError((status, a))
        self.messages.append(a["choices"][0]["message"])
        return a["id"]


def numbers(store, service, folder):
    """An older copy does not know a gateway, and another one joins it. Both have numbers of their own, whether the
    first one is alive or dead. So no turn has the number of another one, and all gateways serve all sessions."""
    for is_dead in (0, 1):
        name, what = f"numbers{is_dead}", ("alive", "dead")[is_dead]
        record = ("--record", store.url(name))
        with gateway(TNK, service, *record) as old:
            s, y, n = (Talk(session) for session in "syn")
            s.ask(old)
            young = gateway(TNK, service, *record)

            def before():
                young.__enter__()
                for talk in (s, y):
                    talk.ask(young)
                s.ask(old)
                if is_dead:
                    young.kill()
                else:
                    young.process.send_signal(signal.SIGSTOP)

            copied(store, folder, before)
            try:
                with gateway(TNK, service, *record) as new:
                    for _ in range(4):
                        n.ask(new)
                    fleet = [old, new]
                    if not is_dead:
                        young.process.send_signal(signal.SIGCONT)
                        fleet.append(young)
                    for talk in (n,) if is_dead else (n, s, y):
                        for g in fleet:
                            talk.ask(g)
                    alive = [Client(g.url).ask("GET", "/healthz")[0] for g in fleet]
                    check(set(alive) == {200}, f"the first gateway is {what}: all gateways go on", alive)
            finally:
                if not is_dead:
                    young.process.send_signal(signal.SIGCONT)
                young.__exit__()
        turns = turns_in(store, name)
        counts = {session: len([t for t in turns if t["session"] == session]) for session in "syn"}
        check(counts == ({"s": 2, "y": 0, "n": 6} if is_dead else {"s": 6, "y": 4, "n": 7}),
              f"the first gateway is {what}: the store has each turn once", counts)
        check(len({t["turn"] for t in turns}) == len(turns), f"the first gateway is {what}: each has its number", turns)
        check([bool(t.get("parent")) for t in turns if t["session"] == "n"] == [False] + [True] * (counts["n"] - 1),
              f"the first gateway is {what}: each turn continues the one before", turns)
        got, err = examples(record[1])
        lens = {example["session"]: len(example["turns"]) for example in got}
        check(lens == ({"s": 1, "n": 6} if is_dead else counts) and len(got) == len(lens),
              f"the first gateway is {what}: the examples have them", (got, err))


def parents(store, service, folder):
    """After an older copy a gateway writes a turn again before another gateway has written the one that it continues.
    Who reads the record from its beginning waits for that one."""
    url = store.url("parents")
    s = Talk("s")

    def before(one, two):
        s.ask(one)
        number = s.ask(two)
        for value in (0.5, 1):
            status, a = Client(two.url).post("/s/s/tnk/reward", {"id": number, "reward": value})
            assert status == 200, a
        one.process.send_signal(signal.SIGSTOP)

    with gateway(TNK, service, "--record", url) as one, gateway(TNK, service, "--record", url) as two:
        copied(store, folder, lambda: before(one, two))
        while len(turns_in(store, "parents")) < 1 or store.lines("parents")[-1].count('"reward":1') == 0:
            time.sleep(0.05)
        got, err = examples(url)
        check(not got and err.count("is left out") == 1, "a turn without the one before it is left out", (got, err))
        with gateway(TNK, service, "--record", url) as new:
            one.process.send_signal(signal.SIGCONT)
            s.ask(one)
            s.ask(new)
        turns = turns_in(store, "parents")
        check(turns[0].get("parent") == turns[1]["turn"], "the turn is in the store before the one that it continues", turns)
        check([t.get("parent") for t in turns] == [turns[1]["turn"], None, turns[0]["turn"], turns[2]["turn"]],
              "the next ones continue it", turns)
        got, err = examples(url)
        check([len(example["turns"]) for example in got] == [4] and not err, "and so do the examples", (got, err))


def older(store, service, folder):
    """A store comes back with an older copy of its file. A gateway writes its lines again that the
    copy lacks. Turns that continue a turn of a gateway that has ended are left out, and that is said."""
    talk = [{"role": "user", "content": "hi"}]
    logs = [pathlib.Path(folder) / f"older.{k}.log" for k in range(2)]
    url = store.url("older")

    def ask(g, session):
        status, a = Client(g.url).post(f"/s/{session}/v1/chat/completions",
                                       {"model": "m", "max_tokens": 4, "messages": talk})
        assert status == 200, a
        talk.append(a["choices"][0]["message"])
        talk.append({"role": "user", "content": "more"})

    with gateway(TNK, service, "--record", url, log=logs[0]) as one:
        ask(one, "s")
        copied(store, folder, lambda: ask(one, "s"))
        ask(one, "s")
        got, err = examples(url)
        check([len(example["turns"]) for example in got] == [3] and not err, "an older copy has all turns again", (got, err))
        counted = re.findall(r"^tnk_gateway_store_older_copies_total (\d+)", Client(one.url).ask("GET", "/metrics")[1], re.M)
        check(counted == ["1"], "the metrics count it", counted)
        said = logs[0].read_text()
        check(said.count("older copy") == 1 and "are written again" in said, "the log says so once", said)
        with gateway(TNK, service, "--record", url, log=logs[1]) as two:
            ask(two, "s")
            copied(store, folder, lambda: (ask(one, "s"), ask(two, "s"), one.kill()))
            ask(two, "s")
            got, err = examples(url)
            check(err.count("continues one that the store has lost") == 1 and "canary" not in err,
                  "a turn whose turn before is lost is left out, and that is said", (got, err))
            said = logs[1].read_text()
            check(said.count("older copy") == 1, "the other gateway says so once", said)


def too_long(store, service, folder):
    """A line that is too long for the store is refused, which is said to its request only."""
    store.ask("CONFIG", "SET", "proto-max-bulk-len", 1 << 20)
    try:
        for what in ("store", "way"):
            name, log = f"long_{what}", pathlib.Path(folder) / f"long_{what}.log"
            way = Narrow(store) if what == "way" else None
            url = store.url(name)
            if way is not None:
                url = url.replace(str(store.port), str(way.port))
            with gateway(TNK, service, "--record", url, log=log) as g:
                talk = Talk("s")
                talk.ask(g)
                body = {"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": "hi", "name": "x" * 1200000}]}
                for path in ("/s/long/v1/chat/completions", "/s/s/v1/chat/completions"):
                    with ThreadPoolExecutor(2) as pool:
                        long = pool.submit(lambda at=g.url, to=path, a=body: Client(at).post(to, a))
                        other = pool.submit(talk.ask, g)
                        status, a = long.result()
                        check(status == 413 and "too long" in a["error"]["message"],
                              f"{what}: a request whose line is too long is refused", (status, str(a)[:300]))
                        check(other.result(), f"{what}: another request is answered")
                while Client(g.url).ask("GET", "/readyz")[0] != 200:
                    time.sleep(0.05)
                talk.ask(g)
                status, a = Client(g.url).chat("short", path="/s/long/v1/chat/completions")
                check(status == 200, f"{what}: a short request of the session is answered", a)
            turns = turns_in(store, name)
            counts = {session: len([t for t in turns if t["session"] == session]) for session in ("s", "long")}
            check(counts == {"s": 4, "long": 1}, f"{what}: the store has the other turns", counts)
            check(len([line for line in store.lines(name) if line.startswith('{"type":"failed"')]) == 2,
                  f"{what}: the record says which request has failed", store.lines(name))
            said = log.read_text()
            check(said.count("is too long for the server") == 2 and "canary" not in said, f"{what}: the log says so", said)
            got, err = examples(store.url(name))
            check(sorted(len(example["turns"]) for example in got) == [1, 4] and not err,
                  f"{what}: the examples have the other turns", (got, err))
    finally:
        store.ask("CONFIG", "SET", "proto-max-bulk-len", 512 << 20)


class Narrow(threading.Thread):
    """A way to the store that closes when more than 1 MiB comes at once, without a reply."""

    def __init__(self, store):
        super().__init__(daemon=True)
        self.store = store
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.store.port))
            threading.Thread(target=self.carry, args=(client, server), daemon=True).start()

    def carry(self, client, server):
        with client, server:
            while True:
                for ready in select.select((client, server), (), ())[0]:
                    data = ready.recv(1 << 16)
                    if not data or any(int(n) > 1 << 20 for n in re.findall(rb"\r\n\$(\d{7,9})\r\n", data)):
                        return
                    (server if ready is client else client).sendall(data)


def marks(store, service):
    """An export whose connection ends before the reply to a mark makes the mark again, and once."""
    with gateway(TNK, service, "--record", store.url("marks")) as g:
        for k in range(3):
            Client(g.url).chat("hi", path=f"/s/{k}/v1/chat/completions")
    way = Way(store)
    url = store.url("marks").replace(str(store.port), str(way.listener.getsockname()[1]))
    got = subprocess.run([TNK, "gateway", "--datums", url], capture_output=True, text=True, check=False)
    made = [line for line in store.lines("marks") if '"type":"exported"' in line]
    check(got.returncode == 0 and len(got.stdout.splitlines()) == 3, "an export ends although a reply is lost", got)
    check(way.n_lost == 1 and len(made) == 3, "each mark is made once", (way.n_lost, made))


class Way(threading.Thread):
    """A way to the store that ends before the first reply to a mark."""

    def __init__(self, store):
        super().__init__(daemon=True)
        self.store, self.n_lost = store, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.store.port))
            threading.Thread(target=self.carry, args=(client, server), daemon=True).start()

    def carry(self, client, server):
        loses = False
        with client, server:
            while True:
                for ready in select.select((client, server), (), ())[0]:
                    data = ready.recv(65536)
                    if not data or (loses and ready is server):
                        return
                    if self.n_lost == 0 and b"EVALSHA" in data and ready is client:
                        self.n_lost, loses = 1, True
                    (server if ready is client else client).sendall(data)


class Loading(threading.Thread):
    """A way to the store, which says to the first connections that it loads its file."""

    N = 4

    def __init__(self, store):
        super().__init__(daemon=True)
        self.store, self.n_refused = store, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.start()

    def carry(self, a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        b.close()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            if self.n_refused < self.N:
                self.n_refused += 1
                client.recv(65536)
                client.sendall(b"-LOADING the dataset in memory\r\n")
                client.recv(65536)
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.store.port))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=pair, daemon=True).start()


def loading(store, service):
    """A gateway that starts waits until the store has read its file."""
    way = Loading(store)
    port = way.listener.getsockname()[1]
    with gateway(TNK, service, "--record", store.url("loading").replace(str(store.port), str(port))) as g:
        client = Client(g.url)
        got = client.chat("hello")
        check(got[0] == 200 and way.n_refused == way.N, "a store that loads its file is waited for", got)
        client.close()


def version_of(g):
    return int(re.search(r"^tnk_gateway_sampler_version (\d+)", Client(g.url).ask("GET", "/metrics")[1], re.M)[1])


def shared_limits(store, service):
    """A key counts its requests at all gateways, and its end is known to all."""
    admin = {"Authorization": "Bearer admin"}
    options = ("--admin-key", "admin", "--record", store.url("limits"))
    with gateway(TNK, service, *options) as one, gateway(TNK, service, *options) as two:
        status, key = Client(one.url).post("/tnk/sessions", {"session": "s", "max_requests": 4}, **admin)
        check(status == 200, "a key is created", key)
        got = []
        for k in range(6):
            at = (one, two)[k % 2]
            # It reads what is there, so that the key is known before the request.
            Client(at.url).ask("GET", "/tnk/sessions", **admin)
            got.append(Client(at.url).chat(f"question {k}", headers={"X-Api-Key": key["key"]})[0])
        check(got == [200] * 4 + [403] * 2, "two gateways count its requests together", got)
        used = [Client(g.url).ask("GET", "/tnk/sessions", **admin)[1] for g in (one, two)]
        check(used[0] == used[1] and '"requests":4' in json.dumps(used[0]).replace(" ", "").replace("\\", ""),
              "both list the same use", used)
        Client(two.url).ask("DELETE", f"/tnk/sessions/{key['id']}", **admin)
        Client(one.url).ask("GET", "/tnk/sessions", **admin)
        status = Client(one.url).chat("more", headers={"X-Api-Key": key["key"]})[0]
        check(status == 401, "a key that one has ended is refused by the other", status)


def shared_weights(store, service):
    """New weights of one gateway are used by all, and by one that joins."""
    options = ("--record", store.url("weights"))
    with gateway(TNK, service, *options) as one, gateway(TNK, service, *options) as two:
        for g in (one, two):
            Client(g.url).chat("hi")
        check([version_of(one), version_of(two)] == [1, 1], "both begin with the same version")
        status, a = Client(two.url).post("/tnk/sampler", {"base_model": "tnk/byte-lm"})
        check((status, a) == (200, {"version": 2}), "one gets new weights", a)
        while version_of(one) != 2:
            pass
        with gateway(TNK, service, *options) as three:
            Client(three.url).chat("hi")
            check([version_of(g) for g in (one, two, three)] == [2, 2, 2], "all use them")


def refused(store, service):
    """What cannot be used is said when the gateway opens, without the password."""
    for what, url, part in (
            ("a wrong password", store.url("x", "canary2"), "the user or the password was rejected"),
            ("an address without a name", store.url(""), "a slash and a name"),
            ("a server that is missing", f"valkey://:canary@127.0.0.1:{reserve()}/x", "connection refused"),
            ("a wrong port", store.url("x").replace(f":{store.port}", ":0"), "the port"),
            ("another layout", store.url("other"), "another layout"),
            ("another type", store.url("kind"), "WRONGTYPE")):
        store.ask("SET", "tnk:{other}:layout", "0")
        store.ask("SET", "tnk:{kind}:lines", "0")
        try:
            with gateway(TNK, service, "--record", url):
                said = "it has opened"
        except RuntimeError as why:
            said = str(why).split("]: ")[-1]
        check(part in said and "canary" not in said, f"{what} is refused", said)


def main():
    if SERVER is None:
        skip("a shared record", "there is no valkey-server or redis-server")
        plan()
        return
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "drawn"
        with Store(folder) as store, local(TNK, "--sample-log", log) as service:
            refused(store, service)
            stopped(store, service)
            ill(store, service, folder)
            order(store, service)
            flushed(store, service)
            lost(store, service)
            begun_anew(store, service)
            marks(store, service)
            older(store, service, folder)
            numbers(store, service, folder)
            parents(store, service, folder)
            too_long(store, service, folder)
            loading(store, service)
            shared_limits(store, service)
            shared_weights(store, service)
            for n in (2, 4):
                fleet_of(n, store, service, folder, log)
    plan()


main()
