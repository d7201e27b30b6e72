#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk gateway killed at random moments, while network and server fail.

usage: run_kills.py TNK_COMMAND

TNK_TEST_KILLS: how often it is killed (4); TNK_TEST_SEED: of moments and faults
(7). Whatever a client was answered is recorded, once and as it was drawn, with
its reward, and of everything else the record says what has become of it. Output is TAP, see
test/support/tap.py.
"""
import http.client
import os
import pathlib
import random
import sys
import tempfile
import threading
from collections import Counter

from gateway import Client, events, gateway, local, not_drawn, not_gone_on, records, turns_of
from tap import check, plan

TNK = sys.argv[1]
KILLS = int(os.environ.get("TNK_TEST_KILLS", 4))
SEED = int(os.environ.get("TNK_TEST_SEED", 7))
FAULTS = f"seed={SEED},mild=5%"
AGENTS = 8


class Agent(threading.Thread):
    """Asks one question after the other in a session of its own, as a stream or
    not. No question comes twice, so that each is found again in what was
    recorded."""

    def __init__(self, url, name, is_stream, stop):
        super().__init__()
        self.client = Client(url)
        self.name, self.is_stream, self.stop = name, is_stream, stop
        self.seen = {}   # question -> (id, tokens as bytes)
        self.cut = []    # questions that nobody has answered
        self.failed = []  # those that were answered with an error
        self.rewards = {}  # number of a turn -> reward that was confirmed

    def run(self):
        talk = []
        for n in range(10000):
            if self.stop.is_set():
                return
            question = f"{self.name} asks {n}"
            # A conversation that has lost its beginning is another one, which goes on as well: however many
            # questions a life has, most go on from the one before.
            talk = (talk if len(talk) < 8 else talk[-2:]) + [{"role": "user", "content": question}]
            try:
                status, a = self.ask(talk)
            except (OSError, ValueError, http.client.HTTPException):
                self.cut.append(question)
                return
            if status != 200:
                self.failed.append(question)
                talk.pop()
                continue
            self.seen[question] = a["id"], [t["bytes"] for t in a["tokens"]]
            talk.append({"role": "assistant", "content": a["content"]})
            self.reward(a["id"], n / 4)

    def ask(self, talk):
        """The status, and of 200 the answer's id, content and tokens."""
        status, a = self.client.chat(talk, path=f"/s/{self.name}/v1/chat/completions", logprobs=True,
                                     stream=self.is_stream)
        if status != 200:
            return status, a
        if not self.is_stream:
            choice = a["choices"][0]
            return 200, {"id": a["id"], "content": choice["message"]["content"],
                         "tokens": choice["logprobs"]["content"]}
        chunks = events(a)
        if any("error" in chunk for chunk in chunks):
            return 500, a
        if not a.endswith("data: [DONE]\n\n"):
            raise ValueError("the stream was cut off")
        choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
        return 200, {"id": chunks[0]["id"],
                     "content": "".join(choice["delta"].get("content") or "" for choice in choices),
                     "tokens": [t for choice in choices for t in (choice.get("logprobs") or {}).get("content") or []]}

    def reward(self, answer, value):
        try:
            if self.client.post(f"/s/{self.name}/tnk/reward", {"id": answer, "reward": value})[0] == 200:
                self.rewards[int(answer.split("-")[1])] = value
        except (OSError, ValueError, http.client.HTTPException):
            pass  # the next question hears of it


def life(service, path, number, rng):
    """One life of a gateway, until so much was answered, or written."""
    stop = threading.Event()
    with gateway(TNK, service, "--record", path) as g:
        agents = [Agent(g.url, f"life{number}agent{k}", k % 2 == 1, stop) for k in range(AGENTS)]
        for agent in agents:
            agent.start()
        n_seen = rng.randint(1, 60)
        n_bytes = path.stat().st_size + rng.randint(1, 60000)
        by_bytes = rng.random() < 0.5
        while any(agent.is_alive() for agent in agents):
            if (path.stat().st_size >= n_bytes if by_bytes else
                    sum(len(agent.seen) for agent in agents) >= n_seen):
                break
            agents[0].join(0.001)
        g.kill()
        stop.set()
        for agent in agents:
            agent.join()
    return agents


def check_tokens(agents, turns):
    """What each client was shown is what was recorded."""
    wrong = []
    for agent in agents:
        for number, tokens in agent.seen.values():
            sampled = turns[int(number.split("-")[1])]["sampled"]
            if [[i] if i < 256 else [] for i in sampled] != [t if len(t) == 1 else [] for t in tokens]:
                wrong.append(number)
    check(not wrong, "clients have seen the recorded tokens", wrong)


def check_each(agents, lines, turns):
    """Each question has one turn if it was answered, one at most if its client
    was cut off, none if it was refused."""
    by_question = Counter(t["messages"][-2]["content"] for t in turns.values())
    lost = [(q, number) for a in agents for q, (number, _) in a.seen.items() if by_question[q] != 1 or
            int(number.split("-")[1]) not in turns or
            turns[int(number.split("-")[1])]["messages"][-2]["content"] != q]
    check(not lost, f"{sum(len(a.seen) for a in agents)} answers are recorded, once", lost)
    doubled = [q for a in agents for q in a.cut if by_question[q] > 1]
    told = sum(by_question[q] for a in agents for q in a.cut)
    check(not doubled, f"{sum(len(a.cut) for a in agents)} clients were cut off, {told} behind their turn", doubled)
    refused = [q for a in agents for q in a.failed if by_question[q]]
    check(not refused, f"{sum(len(a.failed) for a in agents)} were refused, without a turn", refused)
    asked = {line["number"]: line["session"] for line in lines if line["type"] == "asked"}
    ended = Counter(t["request"] for t in turns.values())
    for line in lines:
        if line["type"] in ("failed", "gone"):
            ended[line["number"]] += 1
    check(set(ended) <= set(asked) and all(n == 1 for n in ended.values()),
          f"{len(asked)} requests, each with one end at most", ended)
    open_ = Counter(session for number, session in asked.items() if number not in ended)
    wrong = [a.name for a in agents if open_[a.name] > len(a.cut)]
    check(not wrong, f"{sum(open_.values())} without one, which a kill has ended", wrong)
    wrong = [a.name for a in agents if sum(s == a.name for s in asked.values()) >
             len(a.seen) + len(a.cut) + len(a.failed)]
    check(not wrong, "none was made by itself", wrong)


def check_rewards(agents, lines):
    told = {line["turn"]: line["reward"] for line in lines if line["type"] == "reward"}
    confirmed = {number: value for agent in agents for number, value in agent.rewards.items()}
    lost = [number for number, value in confirmed.items() if told.get(number) != value]
    check(confirmed and not lost, f"{len(confirmed)} rewards are kept", lost)


def check_draws(agents, path, log):
    """A question is drawn once, also where its answer was lost on the way."""
    wrong = not_drawn(path, log)
    check(not wrong, "every turn is what the server drew", wrong[:1])
    drawn = Counter()
    for line in records(log):
        text = bytes(i for i in line["prompt"] if i < 256).decode(errors="replace")
        at = text.rfind(" asks ")
        if at >= 0:
            drawn[text[text.rfind("life", 0, at):at] + text[at:].split("\n")[0]] += 1
    several = [(q, n) for q, n in drawn.items() if n > 1]
    missing = [q for a in agents for q in a.seen if drawn[q] != 1]
    check(not several and not missing, f"{len(drawn)} questions are drawn, once each", (several, missing[:3]))


def main():
    rng = random.Random(SEED)
    agents = []
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "drawn"
        faults = pathlib.Path(folder) / "faults"
        path = pathlib.Path(folder) / "record"
        path.touch()
        with local(TNK, "--sample-log", log, "--faults", FAULTS, "--fault-log", faults) as service:
            for number in range(KILLS):
                agents += life(service, path, number, rng)
            with gateway(TNK, service, "--record", path) as g:
                check(Client(g.url).chat("hi")[0] == 200, f"it goes on after {KILLS} kills")
        check(faults.read_text().count("\n") > 0, f"{faults.read_text().count(chr(10))} faults")
        turns = turns_of(path)
        check(not not_gone_on(turns), "what goes on begins with what was sampled")
        n = sum("parent" in turn for turn in turns.values())
        check(4 * n > len(turns), f"{n} of {len(turns)} turns go on from another one")
        check_each(agents, records(path), turns)
        check_tokens(agents, turns)
        check_rewards(agents, records(path))
        check_draws(agents, path, log)
    plan()


main()
