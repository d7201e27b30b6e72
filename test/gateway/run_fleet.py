#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Four gateways with one record, which are killed at random moments, as the store
is, while the service fails now and then.

usage: run_fleet.py TNK_COMMAND

Agents change the gateway at every turn and with every retry, which they count as
the SDKs do. TNK_TEST_AGENTS: how many there are (20). TNK_TEST_KILLS and
TNK_TEST_STORE_KILLS: how often a gateway and the store are killed (1 and 1).
TNK_TEST_SEED: of the moments and the faults (7). The whole size is 500, 30 and 10.
Output is TAP, see test/support/tap.py.
"""
import http.client
import os
import pathlib
import random
import re
import sys
import tempfile
import threading
import time

from fleet import check_fleet
from gateway import Client, gateway, local, records
from store import SERVER, Store
from tap import check, plan, skip

TNK = sys.argv[1]
AGENTS = int(os.environ.get("TNK_TEST_AGENTS", 20))
KILLS = int(os.environ.get("TNK_TEST_KILLS", 1))
STORE_KILLS = int(os.environ.get("TNK_TEST_STORE_KILLS", 1))
SEED = int(os.environ.get("TNK_TEST_SEED", 7))
FAULTS = f"seed={SEED},mild=2%"
GATEWAYS = 4
TURNS = 10
TRIES = 100
WEIGHTS = 3


class Agent(threading.Thread):
    def __init__(self, k, urls):
        super().__init__(daemon=True)
        self.name, self.at, self.urls = f"agent{k}", k, urls
        self.random = random.Random(SEED * 10000 + k)
        self.seen, self.rewards, self.n_retries, self.wrong = {}, {}, 0, []

    def ask(self, path, body):
        """Ask one gateway after another, until one answers."""
        for retry in range(TRIES):
            self.at += 1
            client = Client(self.urls[self.at % GATEWAYS])
            try:
                status, a = client.post(f"/s/{self.name}{path}", body, X_Stainless_Retry_Count=str(retry))
                if status == 200:
                    return a
                self.wrong.append((path, status, a))
            except (OSError, ValueError, http.client.HTTPException) as why:
                self.wrong.append((path, repr(why)))
            finally:
                client.close()
            self.n_retries += 1
            # The pause of a client. No check depends on it.
            threading.Event().wait(min(0.5 * 2 ** retry, 4) * self.random.uniform(0.5, 1))
        raise RuntimeError(self.wrong[-3:])

    def run(self):
        talk = []
        for n in range(TURNS):
            talk.append({"role": "user", "content": f"{self.name} asks {n}."})
            a = self.ask("/v1/chat/completions", {"model": "m", "max_tokens": 6, "messages": talk})
            number = int(a["id"].split("-")[1])
            talk.append(a["choices"][0]["message"])
            for value in (n + 0.5, n):
                self.ask("/tnk/reward", {"id": a["id"], "reward": value})
            self.rewards[number] = n
            self.seen[number] = n


def run_agents(agents, store, begin, fleet, urls):
    """Kill a gateway or the store whenever so much was answered, and start it
    again."""
    rng = random.Random(SEED)
    at = sorted(rng.sample(range(1, AGENTS * TURNS * 9 // 10), KILLS + STORE_KILLS))
    whom = ["gateway"] * KILLS + ["store"] * STORE_KILLS
    rng.shuffle(whom)
    for agent in agents:
        agent.start()
    for n, what in zip(at, whom):
        while sum(len(a.seen) for a in agents) < n and any(a.is_alive() for a in agents):
            threading.Event().wait(0.005)
        if what == "store":
            store.kill()
            store.start()
            continue
        k = rng.randrange(GATEWAYS)
        fleet[k].kill()
        fleet[k].__exit__()
        fleet[k] = begin()
        urls[k] = fleet[k].url
    for agent in agents:
        agent.join()


def version_of(url):
    client = Client(url)
    text = client.ask("GET", "/metrics")[1]
    client.close()
    return int(re.search(r"^tnk_gateway_sampler_version (\d+)", text, re.M)[1])


def change_weights(urls):
    """Seconds until all gateways use new weights, for each change."""
    took = []
    for n in range(WEIGHTS):
        began = time.monotonic()
        status, a = Client(urls[n % GATEWAYS]).post("/tnk/sampler", {"base_model": "tnk/byte-lm"})
        if status != 200:
            return took, (status, a)
        while any(version_of(url) < a["version"] for url in urls):
            pass
        took.append(round(time.monotonic() - began, 2))
    return took, None


def check_each(agents, turns, drawn):
    """Report turns and samples that no client received. A kill or a fault may cause them."""
    n_seen = sum(len(a.seen) for a in agents)
    check(n_seen == AGENTS * TURNS, f"{n_seen} turns are answered, with {sum(a.n_retries for a in agents)} retries",
          [a.wrong[-3:] for a in agents if len(a.seen) < TURNS])
    asked = [t["messages"][-2]["content"] for t in turns.values()]
    check(len(set(asked)) == n_seen, f"{len(asked) - n_seen} of {len(asked)} turns have no reader")
    print(f"# {len(records(drawn)) - len(asked)} of {len(records(drawn))} samples are in no turn")


def main():
    if SERVER is None:
        skip("a fleet", "there is no valkey-server or redis-server")
        plan()
        return
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "drawn"
        with Store(folder) as store, local(TNK, "--sample-log", log, "--faults", FAULTS) as service:
            logs = pathlib.Path(folder)
            begin = lambda: gateway(TNK, service, "--record", store.url("fleet"), log=logs / "said").__enter__()
            fleet = []
            try:
                for _ in range(GATEWAYS):
                    fleet.append(begin())
                urls = [g.url for g in fleet]
                agents = [Agent(k, urls) for k in range(AGENTS)]
                run_agents(agents, store, begin, fleet, urls)
                took, wrong = change_weights(urls)
                check(wrong is None, f"all gateways use new weights, after {took} s", wrong)
            finally:
                for g in fleet:
                    g.__exit__()
            turns = check_fleet(TNK, store, agents, "fleet", log, folder)
            check_each(agents, turns, log)
    plan()


main()
