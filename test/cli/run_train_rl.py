#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train --method rl: rewards, groups and losses, and resuming after kills.

usage: run_train_rl.py TNK_COMMAND

KILLS=20 makes so many for each row of the matrix. Output is TAP, see
test/support/tap.py.
"""
import json
import math
import pathlib
import statistics
import tempfile

from console import check, plan, tnk
from train_runs import (LOGPROB, PLAYED, RATES, STEPS, example, killed_apart, killed_local, metrics, weights,
                        write)

RL = ("--method", "rl")
RUN = ("--steps", STEPS, *RATES, "--save-every", "4", "--schedule", "cosine", "--warm-up", "2")


def turns(prompt, said, reward, number):
    """The members that the gateway adds to an example of one turn."""
    return {"session": f"s{number}", "turns": [{"turn": number, "version": 0, "offset": len(prompt) - 1,
                                                "length": len(said), "reward": reward}]}


def trains(folder, data):
    """Rewarded tokens become more likely, others less."""
    run = folder / "plain"
    got = tnk("train", data, *RL, "--local", "--run", run, *RUN)
    lines = [json.loads(line) for line in metrics(run).splitlines()]
    check(got.returncode == 0 and [line["step"] for line in lines] == [*range(1, STEPS + 1)], "it trains", got)
    first, last = lines[0], lines[-1]
    check(abs(first["kl"]) < 0.01 and abs(first["entropy"] + LOGPROB) < 1e-5 and last["kl"] != first["kl"] and
          last["kl_k2"] > 0.01, "the model leaves the sampler", (first, last))
    check(last["train/loss"] < -1, "rewarded tokens become more likely", lines)
    tnk("train", data, *RL, "--local", "--run", folder / "epoch", "--batch", 5)
    lines = [json.loads(line) for line in metrics(folder / "epoch").splitlines()]
    check([line["reward"] * 5 for line in lines] == [round(line["reward"] * 5) for line in lines] and
          sum(line["reward"] * 5 for line in lines) == sum(reward for _, _, reward in PLAYED), "the rewards", lines)
    config = json.loads((run / "config.json").read_text())["options"]
    check(config["advantages"] == "centered" and config["loss"] == "importance_sampling", "its configuration", config)
    check("5 groups; the rewards of 5 of them differ" in got.stderr, "its groups", got)
    got = tnk("train", data, *RL, "--local", "--run", run, *RUN, "--loss", "ppo")
    check(got.returncode == 6 and "--loss is" in got.stderr, "another loss", got)
    return run


def advantages(folder, plain):
    """Advantages of groups are those that anyone would compute. Groups are told by any of three."""
    kinds = {"centered": lambda r, all_: r - statistics.fmean(all_),
             "normalized": lambda r, all_: (r - statistics.fmean(all_)) / statistics.pstdev(all_),
             "leave-one-out": lambda r, all_: r - (sum(all_) - r) / (len(all_) - 1)}
    for kind, compute in kinds.items():
        rows = []
        for i, (prompt, said, reward) in enumerate(PLAYED):
            others = [r for p, _, r in PLAYED if p == prompt]
            rows.append(example(prompt, said, compute(reward, others)))
        given = folder / f"given-{kind}"
        got = tnk("train", write(folder / f"{kind}.jsonl", rows), *RL, "--local", "--run", given, *RUN)
        check(got.returncode == 0, f"given advantages, {kind}", got)
        ours = folder / f"ours-{kind}"
        named = write(folder / "named.jsonl", [example("x", s, 9.0, reward=r, group=p) for p, s, r in PLAYED])
        used = folder / "played.jsonl" if kind != "normalized" else named
        got = tnk("train", used, *RL, "--local", "--run", ours, *RUN, "--advantages", kind)
        check(got.returncode == 0, f"computed advantages, {kind}", got)
        if used == named:
            rows = [example("x", s, compute(r, [r2 for p2, _, r2 in PLAYED if p2 == p])) for p, s, r in PLAYED]
            got = tnk("train", write(folder / "x.jsonl", rows), *RL, "--local", "--run", folder / "x", *RUN)
            given = folder / "x"
        # The last bit of an advantage may differ.
        pairs = [(json.loads(one)["train/loss"], json.loads(other)["train/loss"])
                 for one, other in zip(metrics(ours).splitlines()[:3], metrics(given).splitlines()[:3])]
        check(len(pairs) == 3 and all(math.isclose(*pair, rel_tol=1e-4) for pair in pairs), f"{kind}: the same run", pairs)
    by_turns = folder / "turns"
    rows = [example(p, s, r, **turns(p, s, r, i)) for i, (p, s, r) in enumerate(PLAYED)]
    got = tnk("train", write(folder / "turns.jsonl", rows), *RL, "--local", "--run", by_turns, *RUN)
    check(got.returncode == 0 and metrics(by_turns) == metrics(plain), "turns of the gateway", got)


def told(folder):
    """A turn that two examples of a session share is trained in the first one only."""
    first = example("a?", "xy", 1.0, **turns("a?", "xy", 1.0, 1))
    second = example("a?", "xyz", 0.0, **turns("a?", "xy", 0.0, 1))
    second["turns"].append({"turn": 2, "version": 0, "offset": 3, "length": 1, "reward": 0.0})
    del second["turns"][0]["reward"]
    second["session"] = first["session"]
    plain = [example("a?", "xy", 0.5), example("a?xy", "z", -0.5)]
    # The same, but the logprobs of the shared turn stay.
    plain[1]["loss_fn_inputs"]["logprobs"]["data"][1:3] = [LOGPROB] * 2
    found = []
    for name, rows in (("turn", [first, second]), ("row", plain)):
        got = tnk("train", write(folder / f"{name}.jsonl", rows), *RL, "--local", "--run", folder / name, "--steps", 3)
        check(got.returncode == 0, f"a shared turn: {name}", got)
        found.append(weights(folder / name, folder / name / "served"))
    check(found[0] == found[1], "is trained once")


def losses(folder, data):
    """Each loss trains, and differently, once the model has left the sampler."""
    found = {}
    losses = ("importance_sampling", "ppo", "cispo", "gspo", "dro")
    for loss in losses:
        run = folder / f"loss-{loss}"
        got = tnk("train", data, *RL, "--loss", loss, "--local", "--run", run, *RUN)
        check(got.returncode == 0 and math.isfinite(json.loads(metrics(run).splitlines()[-1])["train/loss"]), loss, got)
        found[loss] = str(sorted(weights(run, run / "served").items()))
    check(len(set(found.values())) == len(losses), "the losses differ")


def supervised(folder):
    """Examples can be trained on with cross entropy too, beside conversations."""
    row = example("User: 1?\n\nAssistant:", " ab\n")
    row["loss_fn_inputs"] = {"target_tokens": row["loss_fn_inputs"]["target_tokens"], "weights": {
        "data": [0.0 if logprob == 0 else 1.0 for logprob in row["loss_fn_inputs"]["logprobs"]["data"]],
        "dtype": "float32"}}
    got = tnk("train", write(folder / "sft.jsonl", [row, {"prompt": "1?", "completion": "ab"}]), "--local", "--run",
              folder / "sft", "--steps", 2)
    check(got.returncode == 0, "examples for cross entropy", got)
    del row["loss_fn_inputs"]["weights"]["data"][0]
    got = tnk("train", write(folder / "sft.jsonl", [row]), "--local", "--run", folder / "none")
    check(got.returncode == 1 and 'sft.jsonl:1: "weights" has' in got.stderr, "a wrong one is named", got)


def bad_input(folder, data):
    bad = [example("a", "b", reward="1"), example("a", "b", group=1.5), {"messages": []}, example("a", "b", turns=3),
           example("a", "b", turns=[{"turn": 1, "offset": 0, "length": 2}]), example("a", "bc", turns=[
               {"turn": 1, "offset": 0, "length": 1, "reward": 1}, {"turn": 2, "offset": 1, "length": 1, "reward": 2}])]
    bad.append(example("a", "b"))
    del bad[-1]["loss_fn_inputs"]["logprobs"]
    got = tnk("train", data, write(folder / "bad.jsonl", bad), *RL, "--local", "--run", folder / "none")
    check(got.returncode == 1 and "7 of 32 examples" in got.stderr, "bad examples", got)
    for line, words in enumerate(('"reward" is not', '"group" is neither', "model_input is missing", '"turns" is not',
                                  '"turns" needs', "its turns have different", "logprobs"), 1):
        check(any(f"bad.jsonl:{line}: " in text and words in text for text in got.stderr.splitlines()),
              f"named: {words}", got.stderr)
    for rows, words in (([example("a", "b", reward=1), example("a", "b")], "1 of 2 examples have no reward"),
                        ([example("a", "b", reward=1), example("c", "b", reward=2)], "each of the 2 groups are equal")):
        got = tnk("train", write(folder / "some.jsonl", rows), *RL, "--local", "--run", folder / "none")
        check(got.returncode == 1 and words in got.stderr, words, got)
    for args, words in ((["--loss", "ppo"], "--method rl"), ([*RL, "--eval-split", "0.1"], "no evaluation"),
                        ([*RL, "--max-length", "9"], "--max-length"), ([*RL, "--loss", "other"], "cispo")):
        got = tnk("train", data, "--local", "--run", folder / "none", *args)
        check(got.returncode == 2 and words in got.stderr, f"refused: {' '.join(args)}", got)
    check(not (folder / "none").exists(), "and nothing was begun")


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    played = write(top / "played.jsonl", [example(p, s, reward=r) for p, s, r in PLAYED])
    undisturbed = trains(top, played)
    advantages(top, undisturbed)
    told(top)
    losses(top, played)
    supervised(top)
    bad_input(top, played)
    killed_local(top, [played, *RL, *RUN], undisturbed, "rl")
    killed_apart(top, [played, *RL, *RUN], undisturbed, "rl")
plan()
