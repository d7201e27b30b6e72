#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Retention of a shared record: which sessions are removed from Valkey or Redis.

usage: run_keep.py TNK_COMMAND

A session is removed as a whole or not at all, whatever it is doing and whoever
is killed. Output is TAP, see test/support/tap.py.
"""
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time

from gateway import CLEAN, Client, gateway, local
from store import SERVER, Store
from tap import check, plan, skip

TNK = sys.argv[1]
NODE = 512
OLD = ("default", "asking", "idle", "exported", "last")
# By policy: those of OLD that are removed.
POLICIES = {
    "sessions": (("--keep-sessions", "1"), {"idle", "exported", "last"}),
    "age": (("--keep-age-s", "3600"), {"idle", "exported", "last"}),
    "exported": (("--keep-unexported",), {"exported", "last"}),
    "sessions, exported": (("--keep-sessions", "1", "--keep-unexported"), {"exported", "last"}),
    "age, exported": (("--keep-age-s", "3600", "--keep-unexported"), {"exported", "last"}),
}


def path_of(session):
    return f"/s/{session}/v1/chat/completions"


def exported(url, *args):
    done = subprocess.run([TNK, "gateway", "--datums", url, *args], env=CLEAN, capture_output=True, text=True,
                          timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Record:
    """The keys of a record in the store."""

    def __init__(self, store, name):
        self.store, self.name, self.url = store, name, store.url(name)

    def ask(self, command, key, *words):
        return self.store.ask(command, f"tnk:{{{self.name}}}:{key}", *words)

    def removed(self):
        return set(self.ask("ZRANGE", "removed", 0, -1))

    def until_removed(self, session):
        while session not in self.removed():
            time.sleep(0.01)

    def lines(self):
        return [json.loads(line) for line in self.store.lines(self.name)]

    def age(self, *sessions):
        """The sessions were used long ago, one after another."""
        for score, session in enumerate(sessions, 1):
            self.ask("ZADD", "sessions", score, session)

    def left(self, session, lines=None):
        """What the store still has of a session."""
        lines = self.lines() if lines is None else lines
        return {"lines": sorted(line["type"] for line in lines if line.get("session") == session),
                "ids": int(self.ask("LLEN", f"of:{session}")), "open": int(self.ask("ZCARD", f"open:{session}")),
                "used": self.ask("ZSCORE", "sessions", session), "changed": self.ask("HGET", "changed", session),
                "exported": self.ask("HGET", "exported", session)}


NOTHING = {"lines": ["removed"], "ids": 1, "open": 0, "used": None, "changed": None, "exported": None}


def half(record, whole):
    """What is there in part. `whole`: how many lines each session had."""
    gone, lines = record.removed(), record.lines()
    types = {name: [line["type"] for line in lines if line.get("session") == name] for name in gone}
    wrong = {name: left for name, left in types.items() if left != ["removed"]}
    for name in whole.keys() - gone:
        n = int(record.ask("LLEN", f"of:{name}"))
        if n != whole[name]:
            wrong[name] = n
    ids = {line for name in whole for line in record.ask("LRANGE", f"of:{name}", 0, -1)}
    return wrong, ids - {line for line, _ in record.ask("XRANGE", "lines", "-", "+")}


def table(store, service, other):
    """Each policy removes what it may, and nothing else. `service` is stopped
    while a request is under way; a gateway with `other` removes sessions."""
    for policy, (options, expected) in POLICIES.items():
        record = Record(store, policy.replace(", ", "-"))
        with gateway(TNK, service, "--record", record.url) as g:
            client = Client(g.url)
            for session in ("default", "exported", "last"):
                client.chat("hi", path=path_of(session))
            check(len(exported(record.url)) == 3, f"{policy}: what is there is exported")
            talk = [{"role": "user", "content": "hi"}]
            talk.append(client.chat(talk, path=path_of("idle"))[1]["choices"][0]["message"])
            client.chat("hi", path=path_of("asking"))
            answers = []
            asker = threading.Thread(target=lambda at=g.url, to=answers: to.append(
                Client(at).chat("more", path=path_of("asking"))[0]))
            service.process.send_signal(signal.SIGSTOP)
            try:
                asker.start()
                while int(record.ask("ZCARD", "open:asking")) == 0:
                    time.sleep(0.01)
                record.age(*OLD)
                record.ask("ZADD", "sessions", 10 ** 15, "new")
                # Of this one the first request has just failed: it has no turn.
                record.ask("ZADD", "sessions", int(time.time() * 1000), "failed")
                with gateway(TNK, other, "--record", record.url, *options) as keeper:
                    record.until_removed("last")
                    Client(keeper.url).ask("GET", "/tnk/datums")
                    got = record.removed() - {"new"}
                    wanted = expected | ({"failed"} if policy == "sessions" else set())
                    check(got == wanted, f"{policy}: {', '.join(sorted(expected))}", got)
            finally:
                service.process.send_signal(signal.SIGCONT)
            asker.join()
            check(answers == [200], f"{policy}: a request under way is answered", answers)
            after(policy, record, client, expected, talk)


def after(policy, record, client, expected, talk):
    """What gateways and exports make of the removed sessions, and of the others."""
    wrong = {name: record.left(name) for name in expected if record.left(name) != NOTHING}
    check(not wrong, f"{policy}: nothing is left of them", wrong)
    got = {name: client.chat(talk + [{"role": "user", "content": "on"}], path=path_of(name))[0] for name in OLD}
    check(got == {name: 410 if name in expected else 200 for name in OLD}, f"{policy}: they are refused", got)
    status, a = client.post("/s/last/tnk/reward", {"reward": 1})
    check(status == 410 and '"last" was removed' in a["error"]["message"], f"{policy}: so are their rewards", a)
    names = {e["session"] for e in exported(record.url)}
    check(names == set(OLD) - expected, f"{policy}: the others are exported", names)
    if "idle" not in expected:
        turns = [line for line in record.lines() if line["type"] == "turn" and line["session"] == "idle"]
        check(len(turns) == 2 and turns[1]["parent"] == turns[0]["turn"], f"{policy}: a session that stays goes on",
              turns)
    text = client.ask("GET", "/metrics")[1]
    count = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("tnk_gateway_sessions "))
    check(count == len(OLD) - len(expected), f"{policy}: the gateway has forgotten them", count)


def late(store, service, other):
    """A request whose session is removed meanwhile, as if its gateway were dead:
    it is refused, and leaves nothing."""
    record = Record(store, "late")
    admin = {"Authorization": "Bearer admin"}
    options = ("--admin-key", "admin", "--record", record.url)
    with gateway(TNK, service, *options) as g:
        client = Client(g.url)
        key = client.post("/tnk/sessions", {"session": "late"}, **admin)[1]["key"]
        answers = []
        asker = threading.Thread(target=lambda: answers.append(
            Client(g.url).chat("hi", headers={"X-Api-Key": key})))
        service.process.send_signal(signal.SIGSTOP)
        try:
            asker.start()
            while int(record.ask("ZCARD", "open:late")) == 0:
                time.sleep(0.01)
            record.age("late")
            number = record.ask("ZRANGE", "open:late", 0, -1)[0]
            record.ask("ZADD", "open:late", 1, number)
            with gateway(TNK, other, *options, "--keep-age-s", "3600"):
                record.until_removed("late")
        finally:
            service.process.send_signal(signal.SIGCONT)
        asker.join()
        check(answers[0][0] == 410, "a request whose session was removed is refused", answers)
        check(record.left("late") == NOTHING, "it leaves nothing", record.left("late"))
        client.ask("GET", "/tnk/datums", **admin)
        status = client.chat("hi", headers={"X-Api-Key": key})[0]
        check(status == 401, "the key of the session has ended", status)
        keys = [line for line in record.lines() if line["type"].startswith("key")]
        check(not keys, "and its lines are gone", keys)
        status, a = client.post("/tnk/sessions", {"session": "late"}, **admin)
        check(status == 400 and "was removed" in a["error"]["message"], "it gets no other key", a)


def unknown(store, service):
    """A gateway remembers some names of removed sessions only. It learns of others when the store
    refuses their lines."""
    record = Record(store, "unknown")
    admin = {"Authorization": "Bearer admin"}
    with gateway(TNK, service, "--admin-key", "admin", "--record", record.url) as g:
        client = Client(g.url)
        key = client.post("/tnk/sessions", {"session": "a"}, **admin)[1]["key"]
        for session in "ab":
            record.ask("ZADD", "removed", int(time.time() * 1000), session)
        status, a = client.chat("hi", path=path_of("b"), headers=admin)
        check(status == 410 and '"b" was removed' in a["error"]["message"], "a refused request says why", (status, a))
        got = [client.chat("hi", headers={"X-Api-Key": key})[0] for _ in range(2)]
        check(got == [410, 401], "the key of a refused session has ended", got)
        check(not [line for line in record.lines() if line["type"] in ("asked", "turn")], "and nothing was recorded")


def forgotten(store, service):
    """After a day the name of a removed session can be used again."""
    record = Record(store, "forgotten")
    with gateway(TNK, service, "--record", record.url, "--keep-age-s", "3600") as g:
        client = Client(g.url)
        client.chat("hi", path=path_of("a"))
        record.age("a")
        record.until_removed("a")
        record.ask("ZADD", "removed", 1, "a")
        while record.removed():
            time.sleep(0.01)
        check(record.left("a")["lines"] == [] and record.ask("GET", "forgotten") == "1", "the mark is forgotten",
              record.left("a"))
    with gateway(TNK, service, "--record", record.url) as g:
        check(Client(g.url).chat("hi", path=path_of("a"))[0] == 200, "the name can be used again")


def kills(store, service):
    """The gateway that removes, and then the store, is killed in the middle."""
    record = Record(store, "kills")
    names = [f"s{k}" for k in range(24)]
    with gateway(TNK, service, "--record", record.url) as g:
        client = Client(g.url)
        for name in names:
            client.chat("hi", path=path_of(name))
        whole = {name: int(record.ask("LLEN", f"of:{name}")) for name in names}
        for what in ("gateway", "store"):
            before = len(record.removed())
            with gateway(TNK, service, "--record", record.url, "--keep-sessions", "12" if what == "gateway" else "1") as k:
                while len(record.removed()) == before:
                    time.sleep(0.001)
                if what == "gateway":
                    k.kill()
                else:
                    store.kill()
                    store.start()
            wrong = half(record, whole)
            check(wrong == ({}, set()), f"no session is there in part after the {what} was killed", wrong)


def full(store, service):
    """A full store still removes sessions, while lines wait for its memory."""
    record = Record(store, "full")
    with gateway(TNK, service, "--record", record.url, "--keep-age-s", "3600") as g:
        client = Client(g.url)
        for session in "ab":
            client.chat("hi", path=path_of(session))
        # A full store takes no ages, but the end of a request.
        record.ask("ZADD", "open:a", 10 ** 15, "1")
        record.age("a")
        answers = []
        asker = threading.Thread(target=lambda: answers.append(Client(g.url).chat("hi", path=path_of("c"))[0]))
        store.ask("CONFIG", "SET", "maxmemory", "1")
        try:
            asker.start()
            while client.ask("GET", "/readyz")[0] == 200:
                time.sleep(0.01)
            record.ask("ZREM", "open:a", "1")
            record.until_removed("a")
            check(record.removed() == {"a"} and not answers, "a full store removes sessions", record.removed())
        finally:
            store.ask("CONFIG", "SET", "maxmemory", "0")
        asker.join()
        check(answers == [200], "and has space for others", answers)


def long_ones(store, service):
    """A script of the store removes some thousand lines at a time, so that others do not wait for
    long. It continues where the one before has stopped."""
    record = Record(store, "long")
    n, each = 8, 1500
    kept = 2
    for k in range(n + kept):
        # As if a gateway had written it long ago; the last ones are used.
        store.ask("EVAL", "for i=1,ARGV[2] do redis.call('RPUSH',KEYS[2],redis.call('XADD',KEYS[1],'*','w','0',"
                  "'n','0','l','{\"type\":\"gone\",\"number\":1}')) end redis.call('ZADD',KEYS[3],ARGV[3],ARGV[1])", 3,
                  *(f"tnk:{{long}}:{key}" for key in ("lines", f"of:s{k}", "sessions")), f"s{k}", each,
                  k + 1 if k < n else 10 ** 15)
    store.ask("CONFIG", "RESETSTAT")
    with gateway(TNK, service, "--record", record.url, "--keep-age-s", "3600"):
        record.until_removed(f"s{n - 1}")
    check(record.removed() == {f"s{k}" for k in range(n)}, "old sessions with many lines are removed", record.removed())
    ids = {line for k in range(n, n + kept) for line in record.ask("LRANGE", f"of:s{k}", 0, -1)}
    left = {line for line, _ in record.ask("XRANGE", "lines", "-", "+")}
    check(len(ids) == kept * each and ids <= left and len(left - ids) < n + 10, "the others keep their lines",
          (len(ids), len(left)))
    stats = store.ask("INFO", "commandstats")
    calls = {line.split(":")[0]: int(line.split("=")[1].split(",")[0]) for line in stats.splitlines() if "=" in line}
    # Four sessions have more than 5,000 lines. XDEL takes 1,000 lines at most.
    check(calls["cmdstat_eval"] >= n // 4, "by several scripts", calls["cmdstat_eval"])


def memory(store, service):
    """The memory of the store hardly grows with the sessions of before."""
    record = Record(store, "memory")
    sizes = []
    # A line that it was removed stays of each session. It can keep a node of the stream, which has
    # gaps otherwise. Nodes are made smaller than the lines of a session.
    store.ask("CONFIG", "SET", "stream-node-max-bytes", NODE)
    with gateway(TNK, service, "--record", record.url, "--keep-sessions", "5") as g:
        client = Client(g.url)
        for k in range(36):
            client.chat("x" * 100, path=path_of(f"s{k}"), max_tokens=1)
            if k in (5, 35):
                while int(record.ask("ZCARD", "sessions")) > 5:
                    time.sleep(0.01)
                sizes.append(int(record.store.ask("MEMORY", "USAGE", f"tnk:{{{record.name}}}:lines", "SAMPLES", 0)))
        client.ask("GET", "/tnk/datums")
        text = client.ask("GET", "/metrics")[1]
    check(sizes[1] - sizes[0] < 30 * NODE, "30 removed sessions need little memory", sizes)
    print("# bytes:", *sizes)
    check("\ntnk_gateway_sessions 5\n" in text, "and the gateway has those that stay",
          [line for line in text.splitlines() if line.startswith("tnk_gateway_sessions")])


def options(service):
    with tempfile.TemporaryDirectory() as folder:
        for option in (("--keep-sessions", "1"), ("--keep-age-s", "1"), ("--keep-unexported",)):
            done = subprocess.run([TNK, "gateway", "--model", "tnk/byte-lm", "--record", f"{folder}/file", *option],
                                  env=CLEAN, capture_output=True, text=True, timeout=60)
            check(done.returncode == 2 and "need a shared record" in done.stderr, f"{option[0]} needs a store", done)


def main():
    options(None)
    if SERVER is None:
        skip("retention", "there is no valkey-server or redis-server")
        plan()
        return
    with tempfile.TemporaryDirectory() as folder, Store(folder) as store, local(TNK) as service, local(TNK) as other:
        table(store, service, other)
        late(store, service, other)
        unknown(store, service)
        forgotten(store, service)
        kills(store, service)
        full(store, service)
        memory(store, service)
        long_ones(store, service)
    plan()


main()
