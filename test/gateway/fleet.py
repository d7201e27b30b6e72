# SPDX-License-Identifier: MIT
"""Responses of several gateways with one record, for tests in Python."""
import json
import pathlib
import subprocess

from gateway import CLEAN, not_drawn, not_gone_on, records, turns_of
from tap import check


def check_fleet(tnk, store, agents, name, log, folder):
    """`seen` of an agent has the numbers of its turns and of their questions, and
    `rewards` the latest reward of each. Returns the turns of the record."""
    path = pathlib.Path(folder) / f"{name}.jsonl"
    path.write_text("".join(line + "\n" for line in store.lines(name)), errors="surrogateescape")
    turns = turns_of(path)
    lost = [number for a in agents for number in a.seen if number not in turns]
    check(not lost, f"{sum(len(a.seen) for a in agents)} answers are recorded", lost)
    twice = [(r["turn"], r) for r in records(path) if r["type"] == "turn"]
    check(len(turns) == len(twice), "none is recorded twice", sorted(twice, key=lambda t: t[0]))
    check(not not_drawn(path, log), "every turn is what the server drew")
    check(not not_gone_on(turns), "what goes on begins with what was sampled")
    anew = [number for a in agents for number, n in a.seen.items() if n > 0 and not turns[number].get("parent")]
    check(not anew, "no conversation is tokenized anew", anew)
    told = {line["turn"]: line["reward"] for line in records(path) if line["type"] == "reward"}
    wrong = [number for a in agents for number, value in a.rewards.items() if told.get(number) != value]
    check(not wrong, "the latest reward of each answer is kept", wrong)
    done = subprocess.run([tnk, "gateway", "--datums", store.url(name), "--rewarded"], env=CLEAN,
                          capture_output=True, text=True)
    rewards = {t["turn"]: t.get("reward") for line in done.stdout.splitlines() for t in json.loads(line)["turns"]}
    wrong = [number for a in agents for number, value in a.rewards.items() if rewards.get(number) != value]
    check(done.returncode == 0 and not wrong, "the record is exported with its rewards", (done.stderr, wrong))
    return turns
