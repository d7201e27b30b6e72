#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train: optimizers, settings of losses, and steps of several passes.

usage: run_train_options.py TNK_COMMAND

KILLS=20 makes so many for each row of the matrix. Output is TAP, see test/support/tap.py.
"""
import json
import math
import pathlib
import re
import tempfile

from console import check, plan, tnk
from train_runs import PLAYED, RUN, chat, example, killed_apart, metrics, weights, write

PLAYS = [example(prompt, said, reward=reward) for prompt, said, reward in PLAYED]
# The rows of each method, and its options.
METHODS = {
    "sft": ([chat(f"{i}?", "ab" * (1 + i % 3)) for i in range(24)], ["--eval-split", "0.2"]),
    "dpo": ([{"prompt": f"{i % 5}?", "chosen": "ab" * (1 + i % 3), "rejected": "cd" * (1 + i % 2)} for i in range(25)],
            ["--eval-split", "0.2"]),
    "rl": (PLAYS, ["--loss", "ppo"]),
}
STEPS = ("--steps", "5", "--batch", "7", "--learning-rate", "0.02", "--save-every", "2")
# Options of the optimizer, and whether they are its defaults.
OPTIMIZERS = (
    (["--optimizer", "adamw"], True), (["--beta1", "0.9"], True), (["--beta2", "0.95"], True),
    (["--eps", "1e-12"], True), (["--weight-decay", "0"], True), (["--clip-norm", "0"], True),
    (["--beta1", "0"], False), (["--beta1", "0.5"], False), (["--beta2", "0.5"], False), (["--eps", "0.1"], False),
    (["--weight-decay", "0.3"], False), (["--clip-norm", "0.01"], False), (["--optimizer", "dimuon"], False),
    (["--optimizer", "dimuon", "--beta1", "0.2", "--clip-norm", "0.01"], False))
# Settings of losses, and whether they are the defaults of the local server.
SETTINGS = (
    ("ppo", ["clip_low_threshold=0.8", "clip_high_threshold=1.2"], True), ("cispo", ["clip_low_threshold=0"], True),
    ("gspo", ["clip_high_threshold=1.2"], True), ("dro", ["beta=0.05"], True),
    ("ppo", ["clip_low_threshold=0", "clip_high_threshold=100"], False),
    ("cispo", ["clip_high_threshold=1.01"], False), ("gspo", ["clip_low_threshold=0.99", "clip_high_threshold=1.01"], False),
    ("dro", ["beta=0.5"], False))
RL = ("--method", "rl")
REFUSED = (
    (["--optimizer", "sgd"], "adamw"), (["--beta1", "1"], "--beta1 must be below 1"), (["--beta1", "-1"], "--beta1"),
    (["--beta2", "1"], "--beta2 must be below 1"), (["--eps", "0"], "--eps"), (["--eps", "nan"], "--eps"),
    (["--optimizer", "dimuon", "--beta2", "0.5"], "--optimizer adamw"),
    (["--optimizer", "dimuon", "--eps", "1e-8"], "--optimizer adamw"),
    (["--optimizer", "dimuon", "--weight-decay", "0"], "--optimizer adamw"),
    (["--clip-norm", "-0.5"], "--clip-norm"), (["--passes", "0"], "--passes"), (["--passes", "1025"], "--passes"),
    (["--loss-setting", "beta=1"], "--method rl"), ([*RL, "--loss-setting", "beta=1"], "importance_sampling has no settings"),
    ([*RL, "--loss", "dro", "--loss-setting", "clip_low_threshold=1"], "the settings of --loss dro are beta"),
    ([*RL, "--loss", "ppo", "--loss-setting", "clip=1"], "clip_low_threshold and clip_high_threshold"),
    ([*RL, "--loss", "dro", "--loss-setting", "beta=1", "--loss-setting", "beta=2"], "beta is given twice"),
    *(([*RL, "--loss", "dro", "--loss-setting", text], f'"{text}" is not NAME=X')
      for text in ("beta", "beta=", "beta=x", "beta=1x", "beta=-1", "beta=inf", "=", "")))


def trained(folder, name, *args):
    """Train, and return the folder of the run and its weights."""
    run = folder / name
    got = tnk("train", *args, "--local", "--run", run, *STEPS, "--verbose")
    check(got.returncode == 0, f"it trains: {name}", got)
    return run, weights(run, run / "served"), got.stderr


def optimizers(folder):
    data = write(folder / "sft.jsonl", METHODS["sft"][0])
    run, plain, _ = trained(folder, "plain", data)
    found = [plain]
    for number, (options, is_default) in enumerate(OPTIMIZERS):
        name = " ".join(options)
        other, got, _ = trained(folder, f"optimizer-{number}", data, *options)
        if is_default:
            check(got == plain and metrics(other) == metrics(run), f"a default: {name}")
            continue
        check(got not in found, f"it changes the weights: {name}")
        found.append(got)
        again = tnk("train", data, "--local", "--run", other, *STEPS)
        check(again.returncode == 6 and "is the folder of another run" in again.stderr, f"and is remembered: {name}", again)
        again = tnk("train", "--config", other / "config.json", "--run", folder / f"again-{number}")
        check(again.returncode == 0 and metrics(folder / f"again-{number}") == metrics(other),
              f"and is in config.json: {name}", again)


def settings(folder):
    data = write(folder / "rl.jsonl", PLAYS)
    for number, (loss, texts, is_default) in enumerate(SETTINGS):
        options = [word for text in texts for word in ("--loss-setting", text)]
        _, plain, _ = trained(folder, f"loss-{number}", data, *RL, "--loss", loss)
        run, got, _ = trained(folder, f"setting-{number}", data, *RL, "--loss", loss, *options)
        check((got == plain) == is_default, f"{loss}: {' '.join(texts)}")
        again = tnk("train", "--config", run / "config.json", "--run", folder / f"setting-again-{number}")
        check(again.returncode == 0 and metrics(folder / f"setting-again-{number}") == metrics(run),
              f"{loss}: in config.json", again)


def is_close(ours, theirs):
    return ours.keys() == theirs.keys() and all(
        math.isclose(ours[key], theirs[key], rel_tol=1e-4, abs_tol=1e-6) for key in ours if not key.startswith("time"))


def passes(folder):
    """The gradients of passes add up, whatever the method; a step of 7 examples has 7 passes at most."""
    for method, (rows, options) in METHODS.items():
        data = write(folder / f"{method}.jsonl", rows)
        whole, _, _ = trained(folder, f"{method}-whole", data, "--method", method, *options)
        lines = [json.loads(line) for line in metrics(whole).splitlines()]
        for n in (2, 3, 7, 9):
            run, _, said = trained(folder, f"{method}-{n}", data, "--method", method, *options, "--passes", n)
            got = [json.loads(line) for line in metrics(run).splitlines()]
            check(len(got) == 5 and all(map(is_close, got, lines)), f"{method}: {n} passes are the same step", (got, lines))
            sent = len(set(re.findall(r"tnk: (forward_backward\w* \d+): request", said)))
            check(sent == 5 * min(n, 7), f"{method}: {n} passes are {n} requests", sent)
    data = folder / "sft.jsonl"
    again = tnk("train", data, "--local", "--run", folder / "sft-3", *STEPS, *METHODS["sft"][1])
    check(again.returncode == 6 and "--passes is 3 there" in again.stderr, "another number of passes", again)


def kills(folder):
    """A server that is lost between the passes of a step takes their gradients with it."""
    args = [folder / "sft.jsonl", *RUN, "--passes", "3", "--weight-decay", "0.1"]
    plain = folder / "undisturbed"
    got = tnk("train", *args, "--local", "--run", plain)
    check(got.returncode == 0, "a run that nothing disturbs", got)
    killed_apart(folder, args, plain, "passes")


def refused(folder):
    data = write(folder / "data.jsonl", METHODS["sft"][0])
    for options, words in REFUSED:
        got = tnk("train", data, "--local", "--run", folder / "none", *options)
        check(got.returncode == 2 and words in got.stderr, f"refused: {' '.join(options)}", got)
    check(not (folder / "none").exists(), "and nothing was begun")


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    optimizers(top)
    settings(top)
    passes(top)
    kills(top)
    refused(top)
plan()
