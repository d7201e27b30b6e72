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
import signal
import sys
import tempfile
import threading

from fleet import check_fleet
from gateway import Client, gateway, local
from store import SERVER, Store
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
            lost(store, service)
            shared_limits(store, service)
            shared_weights(store, service)
            for n in (2, 4):
                fleet_of(n, store, service, folder, log)
    plan()


main()
