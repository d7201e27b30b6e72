#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train --method dpo: preference pairs, and resuming after kills.

usage: run_train_dpo.py TNK_COMMAND

KILLS=20 makes so many for each row of the matrix. Output is TAP, see
test/support/tap.py.
"""
import json
import math
import pathlib
import tempfile

from console import Local, check, plan, tnk
from train_runs import RUN, STEPS, killed_apart, killed_local, metrics, write

ROWS = [(f"{i % 5}?", "ab" * (1 + i % 3), "cd" * (1 + i % 2)) for i in range(25)]
PAIRS = [{"prompt": p, "chosen": c, "rejected": r} for p, c, r in ROWS]
DPO = ("--method", "dpo")


def messages(**texts):
    return [{"role": role, "content": text} for role, text in texts.items()]


def trains(folder, data):
    """The preferred answers become more likely. A pair's loss follows from its margin."""
    run = folder / "plain"
    got = tnk("train", data, *DPO, "--local", "--run", run, *RUN)
    lines = [json.loads(line) for line in metrics(run).splitlines()]
    check(got.returncode == 0 and [line["step"] for line in lines] == [*range(1, STEPS + 1)], "it trains", got)
    first, last = lines[0], lines[-1]
    check(first["train/loss"] == math.log(2) and first["margin"] == first["accuracy"] == 0,
          "the first weights are their own reference", first)
    check(last["accuracy"] == 1 and last["chosen_reward"] > 0 > last["rejected_reward"] and
          abs(last["margin"] - last["chosen_reward"] + last["rejected_reward"]) < 1e-9 and
          last["eval/loss"] < 0.1 and last["eval/accuracy"] == 1 and last["eval/margin"] > 1,
          "the margin grows", last)
    check([line["step"] for line in lines if "eval/loss" in line] == [3, 6, 9, 12], "evaluations", lines)
    check("accuracy 1.00" in got.stderr and "reference logprobs of 25 pairs" in got.stderr, "it is shown", got.stderr)
    got = tnk("train", data, *DPO, "--beta", "0.5", "--local", "--run", folder / "one", "--batch", 1, "--steps", 4)
    for line in map(json.loads, metrics(folder / "one").splitlines()):
        check(abs(line["train/loss"] - math.log1p(math.exp(-line["margin"]))) < 1e-12, "the loss of a pair", line)
    again = tnk("train", data, *DPO, "--local", "--run", run, *RUN, "--beta", "0.2")
    check(again.returncode == 6 and "--beta is 0.1 there and 0.2 here" in again.stderr, "another beta", again)
    again = tnk("train", data, "--local", "--run", run, *RUN)
    check(again.returncode == 1 and not (folder / "none").exists(), "pairs are no conversations", again)
    return run


def formats(folder):
    """The same pairs in each format are the same examples."""
    shapes = {
        "texts": PAIRS,
        "messages": [{"prompt": messages(user=p), "chosen": messages(assistant=c), "rejected": messages(assistant=r)}
                     for p, c, r in ROWS],
        "message": [{"prompt": p, "chosen": messages(assistant=c)[0], "rejected": messages(assistant=r)[0]}
                    for p, c, r in ROWS],
        "whole": [{"chosen": messages(user=p, assistant=c), "rejected": messages(user=p, assistant=r)}
                  for p, c, r in ROWS],
        "comparison": [{"comparison": {"prompt_conversation": messages(user=p),
                                       "completion_A": messages(assistant=r if i % 2 else c),
                                       "completion_B": messages(assistant=c if i % 2 else r)},
                        "label": "AB"[i % 2]} for i, (p, c, r) in enumerate(ROWS)]}
    digests = {}
    for name, rows in shapes.items():
        run = folder / f"format-{name}"
        got = tnk("train", write(folder / f"{name}.jsonl", rows), *DPO, "--local", "--run", run, "--steps", 1)
        check(got.returncode == 0, f"pairs as {name}", got)
        digests[name] = json.loads((run / "config.json").read_text())["files"][0]["digest"]
    check(len(set(digests.values())) == 1, "the same examples", digests)
    got = tnk("train", folder / "texts.jsonl", *DPO, "--local", "--dry-run", "--json", "--max-length", 24)
    said = json.loads(got.stdout)
    check(said["cut"] > said["left_out"] == 0 and said["examples"] == 25 and said["longest"] == 23, "cut", said)
    got = tnk("train", folder / "texts.jsonl", *DPO, "--local", "--dry-run", "--json", "--max-length", 20)
    check(got.returncode == 1 and "no example is left" in got.stderr, "pairs that train nothing are left out", got)


def planned(folder, data):
    """A dry run names exactly what a run may use: one token less is not enough."""
    chats = write(folder / "chats.jsonl", [{"prompt": p, "completion": c} for p, c, _ in ROWS])
    for name, more in (("dpo", DPO), ("sft", ())):
        args = ["train", data if more else chats, *more, "--local", "--batch", 4, "--steps", 7,
                "--eval-split", "0.2", "--eval-every", 3]
        n = json.loads(tnk(*args, "--dry-run", "--json").stdout)["trained_tokens"]
        for limit, status in ((n, 0), (n - 1, 1)):
            got = tnk(*args, "--run", folder / f"planned-{name}-{limit}", "--max-tokens", limit)
            check(got.returncode == status, f"{name}: a limit of {limit} tokens", got)


def completions(folder):
    """A prompt with its completion is a conversation."""
    digests = []
    for name, rows in (("prompts", [{"prompt": p, "completion": c} for p, c, _ in ROWS]),
                       ("chats", [{"messages": messages(user=p, assistant=c)} for p, c, _ in ROWS])):
        run = folder / f"run-{name}"
        got = tnk("train", write(folder / f"{name}.jsonl", rows), "--local", "--run", run, "--steps", 1)
        check(got.returncode == 0, name, got)
        digests.append(json.loads((run / "config.json").read_text())["files"][0]["digest"])
    check(digests[0] == digests[1], "the same examples", digests)


def bad_input(folder, data):
    bad = write(folder / "bad.jsonl", [PAIRS[0], {"prompt": "x", "chosen": "y"}, {"chosen": "y", "rejected": "z"},
                                       {"prompt": 1, "chosen": "y", "rejected": "z"},
                                       {"comparison": {"completion_A": []}, "label": "Tie"},
                                       {"prompt": "x", "chosen": "y", "rejected": [{"role": "user"}]}, [1]])
    got = tnk("train", data, bad, *DPO, "--local", "--run", folder / "none")
    said = got.stderr
    check(got.returncode == 1 and "6 of 32 pairs" in said, "bad pairs", got)
    for line, words in ((2, '"rejected" is missing'), (3, '"prompt" is missing'), (4, '"prompt" is neither'),
                        (5, '"label" is neither'), (6, "rejected: "), (7, "it is not a JSON object")):
        check(any(f"bad.jsonl:{line}: {words}" in text for text in said.splitlines()), f"named: {words}", said)
    got = tnk("train", write(folder / "p.jsonl", [{"completion": "x"}, {"prompt": "x", "completion": 1}]),
              "--local", "--run", folder / "none")
    check(got.returncode == 1 and 'p.jsonl:1: "prompt" is missing' in got.stderr and
          'p.jsonl:2: "completion" is neither' in got.stderr, "bad completions", got)
    for args, words in ((["--beta", "1"], "--method dpo"), ([*DPO, "--each-answer"], "--each-answer"),
                        (["--method", "dpa"], "sft")):
        got = tnk("train", data, "--local", "--run", folder / "none", *args)
        check(got.returncode == 2 and words in got.stderr, f"refused: {' '.join(args)}", got)
    check(not (folder / "none").exists(), "and nothing was begun")


def lost_reference(folder, data):
    """The reference of trained weights is never computed again, and a damaged one is refused."""
    run, served = folder / "lost", folder / "lost-served"
    args = ["train", data, *DPO, "--model", "tnk/byte-lm", "--run", run, *RUN]
    # The second save fails, so the run ends behind the first one.
    with Local("--data", served, "--faults", "422/save_weights@2-") as server:
        got = server(*args)
    check(got.returncode not in (0, 2) and list(served.glob("*/weights/save-*")), "a run that has a state", got)
    reference = run / "reference.bin"
    whole = reference.read_bytes()
    with Local("--data", served) as server:
        for text in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b""):
            reference.write_bytes(text)
            got = server(*args)
            check(got.returncode == 6 and "reference.bin: these are not" in got.stderr, "a damaged reference", got)
        reference.unlink()
        got = server(*args)
        check(got.returncode == 6 and "reference.bin: it is missing" in got.stderr, "a lost reference", got)
        reference.write_bytes(whole)
        got = server(*args)
        check(got.returncode == 0 and "resuming after" in got.stderr and "computing" not in got.stderr and
              metrics(run) == metrics(folder / "plain"), "the reference is back", got)


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    pairs = write(top / "pairs.jsonl", PAIRS)
    undisturbed = trains(top, pairs)
    formats(top)
    completions(top)
    planned(top, pairs)
    bad_input(top, pairs)
    lost_reference(top, pairs)
    killed_local(top, [pairs, *DPO, *RUN], undisturbed, "dpo")
    killed_apart(top, [pairs, *DPO, *RUN], undisturbed, "dpo")
plan()
