#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests that clients repeat at another gateway of a shared record: one sample
and one turn each, by what the local server has drawn.

usage: run_elsewhere.py TNK_COMMAND

Clients count their retries, as the SDKs do, and change the gateway with each.
Of their connections 20% are cut: half of them during the sampling, and half when
the response arrives. TNK_TEST_AGENTS: how many agents (8). TNK_TEST_SEED: of the
cuts (7). Output is TAP, see test/support/tap.py.
"""
import json
import os
import pathlib
import random
import sys
import tempfile
import threading

from gateway import Client, gateway, local, not_drawn, not_gone_on, records, turns_of
from store import SERVER, Store
from tap import check, plan, skip
from wire import answer1, dial, head1

TNK = sys.argv[1]
AGENTS = int(os.environ.get("TNK_TEST_AGENTS", 8))
SEED = int(os.environ.get("TNK_TEST_SEED", 7))
TURNS = 5
CHAT = "/v1/chat/completions"


def body_of(talk):
    return json.dumps({"max_tokens": 4, "messages": talk}).encode()


def send(url, headers, body):
    peer = dial(url)
    peer.sendall(head1("POST", CHAT, headers, len(body)) + body)
    return peer


def n_drawn(drawn, text):
    """Return the number of samples that were drawn for a text. Prompts are bytes."""
    return sum(text.encode() in bytes(i for i in r["prompt"] if i < 256) for r in records(drawn))


def until_drawn(drawn, text):
    while not n_drawn(drawn, text):
        threading.Event().wait(0.02)


class Agent(threading.Thread):
    def __init__(self, k, fleet, drawn):
        super().__init__()
        self.name, self.at, self.fleet, self.drawn = f"agent{k}.", k, fleet, drawn
        self.random = random.Random(SEED * 1000 + k)
        self.n_cut, self.answers, self.wrong = 0, [], []

    def ask(self, talk, text):
        """Ask until there is an answer."""
        for retry in range(30):
            self.at += 1
            url = self.fleet[self.at % len(self.fleet)].url
            headers = [("X-Tnk-Session", self.name), ("X-Stainless-Retry-Count", str(retry))]
            fate = self.random.random()
            if fate < 0.2:
                self.n_cut += 1
                with send(url, headers, body_of(talk)) as peer:
                    if fate < 0.1:
                        until_drawn(self.drawn, text)
                    else:
                        peer.recv(1)
                continue
            client = Client(url)
            status, a = client.post(CHAT, body_of(talk), **dict(headers))
            client.close()
            if status == 200:
                return a
            self.wrong.append((status, a))
        raise RuntimeError(self.wrong)

    def run(self):
        talk = []
        for n in range(TURNS):
            text = f"{self.name}asks.{n}."
            talk.append({"role": "user", "content": text})
            a = self.ask(talk, text)
            self.answers.append(int(a["id"].split("-")[1]))
            talk.append(a["choices"][0]["message"])


def cut_often(store, service, folder, drawn):
    with gateway(TNK, service, "--record", store.url("cut")) as one, \
            gateway(TNK, service, "--record", store.url("cut")) as two:
        agents = [Agent(k, (one, two), drawn) for k in range(AGENTS)]
        for agent in agents:
            agent.start()
        for agent in agents:
            agent.join()
        wrong = [a.wrong for a in agents if a.wrong or len(a.answers) < TURNS]
        check(not wrong, f"all are answered after {sum(a.n_cut for a in agents)} cuts", wrong)
    path = pathlib.Path(folder) / "cut.jsonl"
    path.write_text("".join(line + "\n" for line in store.lines("cut")), errors="surrogateescape")
    turns = turns_of(path)
    texts = [f"{a.name}asks.{n}." for a in agents for n in range(TURNS)]
    asked = {text: sum(t["messages"][-2]["content"] == text for t in turns.values()) for text in texts}
    check(set(asked.values()) == {1}, f"{len(asked)} questions have one turn each", asked)
    # The prompts of later turns have the text too, so the last one counts.
    ends = [bytes(i for i in r["prompt"] if i < 256) for r in records(drawn)]
    n = sum(b"asks." in end for end in ends)
    check(n == len(texts), "and one sample each", n)
    check(sorted(turns) == sorted(number for a in agents for number in a.answers), "clients have these answers")
    check(not not_drawn(path, drawn), "every turn is what the server drew")
    check(not not_gone_on(turns), "what goes on begins with what was sampled")


def with_key(store, service, drawn):
    """A key names a request at all gateways, also one that joins later."""
    options = ("--record", store.url("keys"))
    keys = {"X_Tnk_Session": "s", "Idempotency_Key": "a-key"}
    asks = body_of([{"role": "user", "content": "with a key."}])
    with gateway(TNK, service, *options) as one:
        first = Client(one.url).post(CHAT, asks, **keys)
        with gateway(TNK, service, *options) as two:
            check(Client(two.url).post(CHAT, asks, **keys) == first, "a gateway that joins repeats the answer", first)
            status, a = Client(two.url).post(CHAT, body_of([{"role": "user", "content": "another."}]), **keys)
            check(status == 422, "the key is of one request", a)
            one.kill()
            check(Client(two.url).post(CHAT, asks, **keys) == first, "also when the first one is dead")
    check(n_drawn(drawn, "with a key.") == 1, "it is sampled once")


def at_once(store, service, drawn):
    """Two gateways get one request in the same moment, many times."""
    options = ("--record", store.url("once"))
    wrong = []
    with gateway(TNK, service, *options) as one, gateway(TNK, service, *options) as two:
        for k in range(40):
            text = f"at once {k}."
            both = threading.Barrier(2)
            got = []

            def ask(g):
                peer = Client(g.url)
                peer.http.connect()
                both.wait()
                got.append(peer.chat(text, path="/s/once" + CHAT, headers={"Idempotency-Key": f"once{k}"}))
                peer.close()

            askers = [threading.Thread(target=ask, args=(g,)) for g in (one, two)]
            for asker in askers:
                asker.start()
            for asker in askers:
                asker.join()
            if n_drawn(drawn, text) != 1 or got[0] != got[1] or got[0][0] != 200:
                wrong.append((k, n_drawn(drawn, text), got))
    check(not wrong, "a request that two gateways get at once is sampled once", wrong)


def in_progress(store, service, drawn):
    """A gateway is killed while another waits for its sample."""
    options = ("--record", store.url("progress"))
    keys = [("X-Tnk-Session", "s"), ("Idempotency-Key", "a-key")]
    body = body_of([{"role": "user", "content": "in progress."}])
    with gateway(TNK, service, *options) as one, gateway(TNK, service, *options) as two:
        with send(one.url, keys, body) as first, send(two.url, keys, body) as second:
            check((answer1(first), answer1(second)) == (200, 200), "both get the answer")
        check(n_drawn(drawn, "in progress.") == 1, "it is sampled once")
    with gateway(TNK, service, *options) as one, gateway(TNK, service, *options) as two:
        body = body_of([{"role": "user", "content": "until killed."}])
        keys[1] = ("Idempotency-Key", "another-key")
        with send(one.url, keys, body):
            until_drawn(drawn, "until killed.")
            with send(two.url, keys, body) as second:
                one.kill()
                check(answer1(second) == 200, "the request of a dead gateway is sampled by another one")


def main():
    if SERVER is None:
        skip("requests at other gateways", "there is no valkey-server or redis-server")
        plan()
        return
    with tempfile.TemporaryDirectory() as folder:
        drawn = pathlib.Path(folder) / "drawn"
        with Store(folder) as store, local(TNK, "--sample-log", drawn, "--latency-ms", "100") as service:
            cut_often(store, service, folder, drawn)
            with_key(store, service, drawn)
            in_progress(store, service, drawn)
            at_once(store, service, drawn)
    plan()


main()
