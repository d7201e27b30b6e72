#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train and tnk rl with a service that fails: the result is that of a service without failures.

usage: run_train_faults.py TNK_COMMAND

SEEDS=40 makes so many runs of each kind with random faults. Output is TAP, see test/support/tap.py.
"""
import concurrent.futures
import os
import pathlib
import random
import shlex
import sys
import tempfile

from console import Local, check, forward, plan, scripted, tnk
from train_runs import RUN, Pair, chat, metrics, weights, write

SEEDS = int(os.environ.get("SEEDS", "1"))
# A run mostly waits, for example five seconds after each 402.
AT_ONCE = 6
PLAYER = pathlib.Path(__file__).with_name("rl_environment.py")
RL = ("--environment", shlex.join([sys.executable, "-I", "-S", str(PLAYER)]), "--steps", 2, "--groups", 2,
      "--group-size", 4, "--learning-rate", "0.02", "--save-every", 1)
WAITS = "refused for billing reasons (HTTP 402); waiting"


class Faulty(Pair):
    """A pair whose servers inject faults. faults(n) returns those of the n-th server."""

    def __init__(self, run, args, command, faults):
        super().__init__(run, args, command)
        self.faults, self.n_servers = faults, 0

    def serve(self, *more):
        self.n_servers += 1
        faults = self.faults(self.n_servers)
        return super().serve(*(("--faults", faults) if faults else ()), *more)


class Restarted(Faulty):
    """A run that may be refused for lack of credit before it begins is started again, as a user does."""

    def restart(self, n_left):
        n_before = self.n_again
        n_left = super().restart(n_left)
        if self.n_again > n_before and "HTTP 402" in self.said and "step " not in self.said:
            self.n_again -= 1
        return n_left


def all_at_once(work, rows):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return [*zip(rows, pool.map(work, rows))]


def difference(pair, code, plain):
    """What is not as in the run without faults; or None."""
    if code != 0 or pair.n_again != 0:
        return code, pair.n_again, pair.said
    if metrics(pair.run) != metrics(plain):
        return "metrics", metrics(pair.run), pair.said
    served = pathlib.Path(f"{pair.run}-served")
    if weights(pair.run, served) != weights(plain, plain / "served"):
        return "weights", pair.said
    left = [path.name for path in served.glob("*/weights/*") if not path.name.startswith(".")]
    return None if len(left) == 1 else ("states", left, pair.said)


# (command, faults of the first server, when it is killed or None, faults of the second server). A server is killed
# at a request, or when it has a state whose result the run does not get.
PAUSES = (
    ("train", "402/get_info@1", None, ""),
    ("train", "402/forward_backward@6", None, ""),
    ("train", "402/optim_step@5", None, ""),
    ("train", "402/retrieve_future@9", None, ""),
    ("train", "402/save_weights@2", None, ""),
    ("train", "402/save_weights_for_sampler@1", None, ""),
    ("train", "402/training_runs@1", None, ""),
    ("train", "", 60, "402/create_session@1"),
    ("train", "", 60, "402/load_weights@1"),
    ("train", "", 60, "402/retrieve_future@1"),
    ("train", "drop_after_commit/save_weights@1-", "save-1", "402/training_runs@1"),
    ("train", "drop_after_commit/save_weights@1-", "save-1", "402/training_runs@2"),
    ("rl", "402/save_weights_for_sampler@2", None, ""),
    ("rl", "402/create_sampling_session@1", None, ""),
    ("rl", "402/asample@3", None, ""),
    ("rl", "402/retrieve_future@9", None, ""),
    ("rl", "402/forward_backward@1", None, ""),
)


def paused(folder, runs):
    """Without credit for a moment, whichever call the service refuses. A run waits, as programs do."""
    def work(row):
        command, first, at, second = row
        args, plain = runs[command]
        pair = Faulty(folder / f"paused-{PAUSES.index(row)}", args, command, lambda n: first if n == 1 else second)
        if isinstance(at, str):
            pair.until = lambda _: [*pathlib.Path(f"{pair.run}-served").glob(f"*/weights/{at}/meta.json")]
        code = pair.all("server" if at else "", (at,) if isinstance(at, int) else ())
        return difference(pair, code, plain), WAITS in pair.said, pair.said

    for row, (found, has_waited, said) in all_at_once(work, PAUSES):
        check(found is None and has_waited, f"{row}: a run waits for credit", (found, said))


# (command, fault). Without credit from the start there is nothing to wait for.
ENDS = (
    ("train", "402/create_session@1-"),
    ("train", "402/create_model@1-"),
    ("rl", "402/create_model@1-"),
    ("train", "402/forward_backward@6-"),
    ("train", "402/save_weights@2-"),
    ("rl", "402/optim_step@2-"),
)


def ended(folder, runs):
    """Without credit for longer than the service allows to wait. The same command continues later."""
    def limit(path, answer):
        if path.endswith("/client/config"):
            answer["billing_exception_max_pause_duration_sec"] = 1

    def work(row):
        command, fault = row
        args, plain = runs[command]
        run = folder / f"ended-{ENDS.index(row)}"
        args = (command, *args, "--model", "tnk/byte-lm", "--run", run)
        with Local("--data", f"{run}-served", "--faults", fault) as server, scripted(forward(server, limit)) as (url, _):
            first = tnk(*args, env={"TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"})
        with Local("--data", f"{run}-served") as server:
            second = server(*args)
        return first, second, second.returncode == 0 and metrics(run) == metrics(plain) and weights(
            run, pathlib.Path(f"{run}-served")) == weights(plain, plain / "served")

    for row, (first, second, is_same) in all_at_once(work, ENDS):
        check(first.returncode == 1 and "402" in first.stderr and "credit" in first.stderr and
              (WAITS in first.stderr) == ("/create_" not in row[1]), f"{row}: the run ends", first)
        check(is_same, f"{row}: the same command continues it", second)


def at_random(folder, runs):
    """5% of the requests fail in any of the ways that a client can recover from, and the server may be killed."""
    def work(row):
        command, who, seed = row
        args, plain = runs[command]
        pair = Restarted(folder / f"random-{command}-{who}-{seed}", args, command, lambda n: f"seed={seed * 100 + n},mild=5%")
        draw = random.Random(f"{command}{seed}")
        code = pair.all(who, tuple(sorted(draw.sample(range(25, 90), 2))) if who else ())
        return difference(pair, code, plain)

    rows = [(command, who, seed) for command in runs for who in ("", "server") for seed in range(SEEDS)]
    for row, found in all_at_once(work, rows):
        check(found is None, f"{row}: random faults", found)


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    chats = write(top / "chats.jsonl", [chat(f"{i % 5}?", "ab" * (1 + i % 3)) for i in range(25)])
    undisturbed = {}
    for name, options in (("train", (chats, *RUN)), ("rl", RL)):
        got = tnk(name, *options, "--local", "--run", top / name)
        check(got.returncode == 0, f"a run of tnk {name} without faults", got)
        undisturbed[name] = options, top / name
    paused(top, undisturbed)
    ended(top, undisturbed)
    at_random(top, undisturbed)
plan()
