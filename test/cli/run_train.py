#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train: trains, resumes after kills, refuses bad input.

usage: run_train.py TNK_COMMAND

KILLS=20 makes so many for each row of the matrix. Output is TAP, see
test/support/tap.py.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.request

from console import CLEAN, TNK, Local, NoTerminal, check, open_terminal, plan, skip, tnk
from train_runs import (Pair, RATES, RUN, STEPS, chat, ended_in_the_middle, killed_apart, killed_at_the_end, killed_local,
                        lost_result, metrics, weights, write)

CHATS = [chat(f"{i % 5}?", "ab" * (1 + i % 3)) for i in range(25)]


def trains(folder, data):
    """One line trains offline, and the loss falls."""
    run = folder / "plain"
    got = tnk("train", data, "--local", "--run", run, *RUN)
    check(got.returncode == 0 and got.stdout.startswith(f"trained {STEPS} steps, loss "), "it trains", got)
    lines = [json.loads(line) for line in metrics(run).splitlines()]
    check([line["step"] for line in lines] == [*range(1, STEPS + 1)], "each step once", lines)
    check(lines[-1]["train/loss"] <= 0.6 * lines[0]["train/loss"], "the loss falls", lines)
    evals = {line["step"]: line["eval/loss"] for line in lines if "eval/loss" in line}
    check([*evals] == [3, 6, 9, 12] and evals[12] <= 0.6 * lines[0]["train/loss"],
          "an evaluation every three steps", lines)
    rates = [line["learning_rate"] for line in lines]
    check(rates[:2] == [0.005, 0.01] and rates[1:] == sorted(rates[1:], reverse=True),
          "the rate rises and falls", rates)
    check(got.stderr.splitlines()[0].startswith(f"step 1/{STEPS}  loss ") and "\x1b" not in got.stderr,
          "plain lines in a pipe", got.stderr)
    states = [p.name for p in (run / "served").glob("*/weights/*")]
    check(states == ["save-3"], "only the last state stays", states)
    again = tnk("train", data, "--local", "--run", run, *RUN, "--json")
    result = json.loads(again.stdout)
    check(again.returncode == 0 and result["steps"] == STEPS and result["loss"] is None,
          "the same command shows the result again", again)
    with Local("--data", run / "served") as server:
        got = server("sample", "--checkpoint", result["sampler_path"], "--temperature", 0,
                     "--max-tokens", 3, "User: 1?\n\nAssistant:")
        check(got.returncode == 0 and got.stdout == " ab\n", "the weights can be sampled from", got)
    return run


def progress(folder, data):
    """On a terminal one line is rewritten; with --json there are objects."""
    args = ["train", data, "--local", "--steps", 2, *RATES]
    got = tnk(*args, "--run", folder / "json", "--json")
    done = [json.loads(line)["progress"]["done"] for line in got.stderr.splitlines()]
    check(done == [1, 2] and json.loads(got.stdout)["steps"] == 2, "progress in JSON", got)
    got = tnk(*args, "--run", folder / "quiet", "--quiet")
    check(got.returncode == 0 and not got.stderr, "nothing with --quiet", got)
    try:
        ours, theirs = open_terminal()
    except NoTerminal:
        skip("a line on a terminal", "no terminals here (/dev/pts)")
        return
    with subprocess.Popen([TNK, *map(str, args), "--run", folder / "tty"], env={**CLEAN, "TERM": "xterm"},
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs) as run:
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 4096):
                text += part
        except OSError:
            pass
    os.close(ours)
    check(run.returncode == 0 and b"\r\x1b[Kstep 2/2  loss" in text, "a line on a terminal", text)


def interrupted(folder, data, plain):
    """Ctrl-C saves; the same command continues."""
    run = folder / "interrupted"
    args = [TNK, "train", data, "--local", "--run", run, *map(str, RUN)]
    process, said = ended_in_the_middle(args, run, 1, signal.SIGINT)
    check(process.returncode == 130 and "The same command continues it" in said, "Ctrl-C", said)
    kept = json.loads((run / "checkpoints.jsonl").read_text().splitlines()[-1])
    check(kept["tnk"] in ("saved", "deleted") and metrics(run) == "".join(
        metrics(plain).splitlines(True)[:len(metrics(run).splitlines())]), "saved with its metrics", kept)
    got = subprocess.run(args, env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    at = int(got.stderr.split("resuming after step ")[1].split()[0])
    check(got.returncode == 0 and 1 <= at < STEPS, "it continues there", got)
    check(metrics(run) == metrics(plain) and
          weights(run, run / "served") == weights(plain, plain / "served"), "with the same result")


def killed_without_a_state(folder, data, plain):
    """Steps that are trained, and paid for, once more are told."""
    run = folder / "stateless"
    args = [TNK, "train", data, "--local", "--run", run, *map(str, RUN), "--save-every", "50"]
    ended_in_the_middle(args, run, 3, signal.SIGKILL)
    n = len(metrics(run).splitlines())
    got = subprocess.run(args, env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    check(got.returncode == 0 and f"no saved state, so its {n} steps are trained again" in got.stderr, "it is told", got)
    check(metrics(run) == metrics(plain), "the same metrics from the beginning")


def interrupted_with_steps_on_the_way(folder, data, plain):
    """The server holds all results until four steps are sent, after which a state is due.
    So the state that Ctrl-C saves is that of the fourth, always."""
    run, served = folder / "held", folder / "held-served"
    args = [TNK, "train", data, "--model", "tnk/byte-lm", "--run", run, *map(str, RUN)]
    with Local("--verbose", "--data", served, "--fault-control",
               "--faults", "try_again/retrieve_future@2-:active") as server:
        env = {**CLEAN, **server.env}
        with subprocess.Popen(args, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            n_sent = n_polls = 0
            while n_sent < 4 and n_polls < 60:
                line = server.process.stderr.readline()
                n_sent += "/optim_step " in line
                n_polls += "/retrieve_future " in line
            process.send_signal(signal.SIGINT)
            with urllib.request.urlopen(urllib.request.Request(server.url + "/tnk/faults", b"", method="PUT")):
                pass
            _, said = process.communicate(timeout=120)
        check(process.returncode == 130 and "The same command continues it" in said, "Ctrl-C with results held", said)
        got = subprocess.run(args, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        check(got.returncode == 0 and "resuming after step 4\n" in got.stderr, "it continues after the fourth step", got)
    check(metrics(run) == metrics(plain) and weights(run, served) == weights(plain, plain / "served"),
          "with the same result")


def sampled(folder, data, plain):
    """Fixed messages are answered while it trains, and the weights stay the same."""
    ask = ("--sample", "1?", "--sample", 'a "b"', "--sample-every", 5)
    args = ["train", data, *RUN, *ask]
    run = folder / "sampled"
    got = tnk(*args, "--local", "--run", run)
    text = (run / "samples.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    check(got.returncode == 0 and [(line["step"], line["prompt"]) for line in lines] ==
          [(step, prompt) for step in (0, 5, 10, STEPS) for prompt in ("1?", 'a "b"')], "the samples of a run", lines)
    check("\\u0000" not in text, "JSON that all programs read", text)
    check(lines[-2]["text"] == " abab" or lines[-2]["text"] == " ab", "what was learned", lines[-2])
    check(f"sample after step {STEPS}  1? -> ab" in got.stderr, "they are shown", got.stderr)
    check(metrics(run) == metrics(plain) and
          weights(run, run / "served") == weights(plain, plain / "served"), "they change no weights")
    again = folder / "sampled-again"
    with subprocess.Popen([TNK, *map(str, args), "--local", "--run", again], env=CLEAN, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while not process.stderr.readline().startswith("sample after step 10"):
            pass
        process.kill()
    (again / "samples.jsonl").open("a").write('{"step":11,"prompt":"1?","te')
    got = tnk(*args, "--local", "--run", again)
    check(got.returncode == 0 and (again / "samples.jsonl").read_text() == text,
          "a killed run has each sample once", (again / "samples.jsonl").read_text())
    with Local("--faults", "422/asample@3-") as server:
        got = server(*args, "--model", "tnk/byte-lm", "--run", folder / "unsampled")
    check(got.returncode == 0 and "samples of step 5 are missing: " in got.stderr and
          len((folder / "unsampled" / "samples.jsonl").read_text().splitlines()) == 2,
          "refused samples end no run", got)
    for extra, words in ((("--sample-every", 3), "--sample-every needs --sample"),
                         (("--sample", "x", "--method", "rl"), "--method rl has no conversations")):
        got = tnk("train", data, "--local", "--run", folder / "none", *extra)
        check(got.returncode == 2 and words in got.stderr, words, got)


def unread_results(folder, data, plain):
    """Killed when the service has the first state and no later result can be fetched. The
    polls of the model and of four steps, with one evaluation, are answered. A state must not
    have a step whose metrics were not read."""
    run, served = folder / "unread", folder / "unread-served"
    args = ["train", data, "--model", "tnk/byte-lm", "--run", run, *RUN]
    n_polls = 1 + 4 * 2 + 1
    with Local("--verbose", "--data", served, "--faults",
               f"try_again/retrieve_future@{n_polls + 1}-:active") as server:
        with subprocess.Popen([TNK, *map(str, args)], env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            n_lines = 0
            while n_lines < 1000 and not list(served.glob("*/weights/save-1")):
                server.process.stderr.readline()
                n_lines += 1
            process.kill()
    check(n_lines < 1000, "there is a state", n_lines)
    with Local("--data", served) as server:
        got = server(*args)
    check(got.returncode == 0 and "resuming after step 4\n" in got.stderr and
          metrics(run) == metrics(plain), "killed with a state and unread results", got)


def saved_ahead(folder, data, plain):
    """A save is called right behind its last step, before the results of its steps are read. The
    polls of the first state are answered, and two more, of which one is that of the first save:
    no later step has both of its results. Killed when the service has the second state, the run
    goes back to the first one, because the metrics of the second one are missing."""
    run, served = folder / "ahead", folder / "ahead-served"
    args = ["train", data, "--model", "tnk/byte-lm", "--run", run, *RUN]
    n_polls = 1 + 4 * 2 + 1 + 2
    with Local("--verbose", "--data", served, "--faults",
               f"try_again/retrieve_future@{n_polls + 1}-:active") as server:
        with subprocess.Popen([TNK, *map(str, args)], env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            n_lines = 0
            while n_lines < 1000 and not list(served.glob("*/weights/save-2")):
                server.process.stderr.readline()
                n_lines += 1
            process.kill()
    check(n_lines < 1000 and len(metrics(run).splitlines()) == 4, "a state before its results", metrics(run))
    return args, run, served


def unread_states(folder, data, plain):
    """What a run does that finds a state with unread results."""
    args, run, served = saved_ahead(folder, data, plain)
    first, second = ([json.loads(line) for line in (run / "checkpoints.jsonl").read_text().splitlines()
                      if f'"save-{i}"' in line][0] for i in (1, 2))
    check(first["tnk_steps"] == 4 and second["tnk_steps"] == 8, "two states", (first, second))
    older, missing = "the state after step 8 was saved before", "the metrics of the steps 5 to 8 are missing"
    for name, faults, at, words, n_lines in (
            ("older", "", 4, older, STEPS),
            ("retried", "503/weights_info@1,503/training_runs@2", 4, older, STEPS),
            ("no deletion", "405/training_runs@2", 8, missing, STEPS - 4),
            ("nothing deleted", "404/training_runs@2", 8, missing, STEPS - 4),
            ("no information", "404/weights_info@1", 8, missing, STEPS - 4),
            ("alone", "", 8, missing, STEPS - 4),
            ("no loading", "404/load_weights@2", 8, missing, STEPS - 4),
            ("unmeasured", "", 8, "the metrics of the steps 1 to 8 are missing", STEPS - 8)):
        copy, kept = folder / f"ahead-{name}", folder / f"ahead-{name}-served"
        shutil.copytree(run, copy)
        shutil.copytree(served, kept)
        if name == "alone":
            shutil.rmtree(next(kept.glob("*/weights/save-1")))
        if name == "unmeasured":
            (copy / "metrics.jsonl").unlink()
        with Local("--verbose", "--data", kept, *(["--faults", faults] if faults else [])) as server:
            got = server(*(copy if arg == run else arg for arg in args))
        check(got.returncode == 0 and f"resuming after step {at}\n" in got.stderr and words in got.stderr,
              f"{name}: it continues after step {at}", (got, server.seen))
        lines = metrics(copy).splitlines(True)
        check(len(lines) == n_lines and set(lines) <= set(metrics(plain).splitlines(True)),
              f"{name}: {n_lines} metrics", lines)
        check(weights(copy, kept) == weights(plain, plain / "served"), f"{name}: the same weights")


# (--save-every, the save that exists when the run is killed)
AHEAD = ((1, 2), (1, 5), (1, 8), (2, 2), (2, 4), (3, 2), (3, 3))


def several_ahead(folder, data, plain):
    """With frequent saves several are under way at once, before the results of their steps are read. Killed when the
    service has some of their states, the run goes back to one whose metrics are there, and leaves no others."""
    for every, at in AHEAD:
        run, served = folder / f"several-{every}-{at}", folder / f"several-{every}-{at}-served"
        args = ["train", data, "--model", "tnk/byte-lm", "--run", run, *RUN, "--save-every", every]
        # The polls of the model, and of the steps that the first save waits for. The third one has an evaluation.
        n_polls = 1 + 2 * every + (every > 2) + 1
        with Local("--verbose", "--data", served, "--faults",
                   f"try_again/retrieve_future@{n_polls + 1}-:active") as server:
            with subprocess.Popen([TNK, *map(str, args)], env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                n_lines = 0
                while n_lines < 1000 and not list(served.glob(f"*/weights/save-{at}/meta.json")):
                    server.process.stderr.readline()
                    n_lines += 1
                process.kill()
        n_read = len(metrics(run).splitlines())
        check(n_lines < 1000 and n_read < every * at, f"{at} states before their results", (every, at, n_lines, n_read))
        with Local("--data", served) as server:
            got = server(*args)
        left = [path.parent.name for path in served.glob("*/weights/*/meta.json")]
        check(got.returncode == 0 and metrics(run) == metrics(plain) and weights(run, served) ==
              weights(plain, plain / "served") and "missing" not in got.stderr and len(left) == 1,
              f"killed with {at} states, saved every {every} steps: the same result", (got, left))


def unread_end(folder, data, plain):
    """Killed when the service has the final state and its sampler weights, of which the run has read nothing. They are
    found, and not saved again."""
    run, served = folder / "end", folder / "end-served"
    args = ["train", data, "--model", "tnk/byte-lm", "--run", run, *RUN]
    n_polls = 1 + STEPS * 2 + STEPS // 3 + 2
    with Local("--verbose", "--data", served, "--faults",
               f"try_again/retrieve_future@{n_polls + 1}-:active") as server:
        with subprocess.Popen([TNK, *map(str, args)], env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            n_lines = 0
            while n_lines < 1000 and not list(served.glob("*/sampler_weights/save-3/meta.json")):
                server.process.stderr.readline()
                n_lines += 1
            process.kill()
    check(n_lines < 1000 and "sampler_path" not in (run / "checkpoints.jsonl").read_text(), "there is an end that is not noted")
    with Local("--data", served) as server:
        got = server(*args)
    saved = sorted(f"{path.parts[-3]}/{path.parts[-2]}" for path in served.glob("*/*/*/meta.json"))
    check(got.returncode == 0 and f"resuming after step {STEPS}\n" in got.stderr and
          saved == ["sampler_weights/save-3", "weights/save-3"], "the end is saved once", (got, saved))
    check(metrics(run) == metrics(plain) and weights(run, served) == weights(plain, plain / "served"), "with the same result")


def seeds(folder):
    """The seed is that of the adapter too: with one example the order is always the same."""
    one = write(folder / "one.jsonl", CHATS[:1])
    said = []
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        got = tnk("train", one, "--local", "--run", folder / name, "--steps", 4, "--seed", seed, *RATES)
        check(got.returncode == 0, "a run with a seed", got)
        said.append(metrics(folder / name))
    check(said[0] == said[2] != said[1], "a seed decides", said)


def other_runs(folder, data, plain):
    """The folder of another run is refused, by what differs."""
    before = {p: p.read_bytes() for p in plain.iterdir() if p.is_file()}
    args = [data, "--local", "--run", plain, *RUN]
    for more, words in ((["--seed", 1], "--seed is 0 there and 1 here"),
                        (["--learning-rate", "0.02"], "--learning-rate is 0.01 there and 0.02 here"),
                        (["--train-on", "everything"], "--train-on is \"last-answer\" there"),
                        (["--steps", "13"], "--steps is 12 there and 13 here"),
                        (["--renderer", "qwen3"], "--renderer is not set there and \"qwen3\" here")):
        got = tnk("train", *args, *more)
        check(got.returncode == 6 and words in got.stderr and "another run" in got.stderr,
              f"refused: {' '.join(map(str, more))}", got)
    other = write(folder / "other.jsonl", CHATS[:-1] + [chat("x", "y")])
    got = tnk("train", other, *args[1:])
    check(got.returncode == 6 and "other.jsonl" in got.stderr, "other data", got)
    got = tnk("train", data, other, *args[1:])
    check(got.returncode == 6 and "1 data files, not 2" in got.stderr, "more data", got)
    moved = write(folder / "moved.jsonl", CHATS)
    got = tnk("train", moved, *args[1:], "--save-every", 3)
    check(got.returncode == 0, "the same data by another name", got)
    check(before == {p: p.read_bytes() for p in before}, "the run is unchanged")
    foreign = folder / "foreign"
    foreign.mkdir()
    (foreign / "notes").write_text("mine")
    got = tnk("train", data, "--local", "--run", foreign)
    check(got.returncode == 6 and "no config.json" in got.stderr and
          [p.name for p in foreign.iterdir()] == ["notes"], "a folder of something else", got)
    (foreign / "config.json").write_text("{}")
    got = tnk("train", data, "--local", "--run", foreign)
    check(got.returncode == 6 and "not a configuration" in got.stderr, "another config.json", got)
    got = tnk("train", data, "--local", "--run", data)
    check(got.returncode == 6 and str(data) in got.stderr, "a file", got)


def limits(folder, data, plain):
    """A limit ends the run between two steps. A higher one continues it, with the same result."""
    prices = folder / "limit.json"
    prices.write_text('{"prices": [{"prompt": 1, "sampled": 1, "trained": 1000}]}')
    lines = [json.loads(line) for line in metrics(plain).splitlines()]
    dry = json.loads(tnk("train", data, "--local", "--dry-run", "--json", *RUN).stdout)
    evaluated = json.loads(tnk("train", data, "--local", "--dry-run", "--json").stdout)["tokens"] - dry["tokens"]
    needs = [int(line["tokens"]) + ("eval/loss" in line) * evaluated for line in lines]
    for name, n in (("max-tokens", 6), ("max-usd", 7)):
        run = folder / name
        exact = sum(needs[:n])
        args = ["train", data, "--local", "--run", run, *RUN, "--prices", prices]
        for limit, n_steps in ((exact - 1, n - 1), (exact, n)):
            value = limit if name == "max-tokens" else (limit + 0.5) / 1000  # the sum is rounded
            got = tnk(*args, f"--{name}", value)
            check(got.returncode == 1 and "exceed the limit" in got.stderr and f"--{name}" in got.stderr and
                  metrics(run) == "".join(metrics(plain).splitlines(True)[:n_steps]),
                  f"--{name} allows {n_steps} steps", got)
        got = tnk(*args)
        check(got.returncode == 0 and f"resuming after step {n}\n" in got.stderr and metrics(run) == metrics(plain) and
              weights(run, run / "served") == weights(plain, plain / "served"), "it continues", got)
    got = tnk("train", data, "--local", "--run", folder / "none", "--max-usd", 1)
    check(got.returncode == 2 and "--prices" in got.stderr, "a limit without prices", got)


def configuration(folder, data, plain):
    """A file with the same names as the options. The command line overrides it."""
    file = folder / "config.json"
    names = [str(word)[2:] for word in RUN[::2]]
    options = {**dict(zip(names, map(str, RUN[1::2]))), "data": [str(data)], "local": True, "seed": None,
               "each-answer": False, "batch": 4, "learning-rate": 0.01, "role": []}
    file.write_text(json.dumps(options))
    run = folder / "configured"
    got = tnk("train", "--config", file, "--run", run)
    check(got.returncode == 0 and metrics(run) == metrics(plain), "options in a file", got)
    again = folder / "again"
    got = tnk("train", "--run", again, f"--config={run / 'config.json'}")
    check(got.returncode == 0 and metrics(again) == metrics(plain), "the stored configuration runs again", got)
    got = tnk("train", data, data, "--config", run / "config.json", "--batch", 8, "--dry-run", "--json")
    said = json.loads(got.stdout)
    check(said["batch"] == 8 and said["examples"] + said["eval_examples"] == 50, "the command line overrides", said)
    file.write_text(json.dumps({**options, "train-on": "roles", "role": ["a", "b"], "set": "x=1"}))
    got = tnk("train", "--dry-run", "--config", file, "--role", "assistant", "--run", folder / "listed")
    check(got.returncode == 0, "lists", got)
    for text, words in (('{"epoch": 2}', 'unknown option "--epoch=2", did you mean "--epochs"?'),
                        ('{"batch": "x"}', "--batch:"), ('{"batch": {}}', '"batch" has a value of the wrong type'),
                        ('{"data": 7}', '"data" has a value'), ('{"data": [7]}', '"data" has a value'), ("[]", "not a JSON object"),
                        ('{"local": "x"}', "takes no value"), ('{"steps": 1, "epochs": 1, "data": "x"}', "either")):
        file.write_text(text)
        got = tnk("train", "--config", file, "--local", "--run", folder / "none")
        check(got.returncode == 2 and words in got.stderr, f"refused: {text}", got)
        check("config.json: " in got.stderr or words == "either", "the file is named", got)
    got = tnk("train", data, "--config", folder / "nowhere", "--local", "--run", folder / "none")
    check(got.returncode == 2 and "nowhere" in got.stderr and not (folder / "none").exists(), "no file", got)


def inputs(folder, data, plain):
    """Folders, patterns, pipes and compressed files have the same examples as one file."""
    lines = data.read_bytes().splitlines(True)
    parts = folder / "parts"
    parts.mkdir()
    (parts / "a.jsonl").write_bytes(b"".join(lines[:9]))
    (parts / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[9:20])))
    (parts / "c.jsonl").write_bytes(b"".join(lines[20:]))
    (parts / "notes.txt").write_text("none")
    (parts / ".d.jsonl").write_text("none")
    run = ["train", "--local", *RUN, "--run"]
    for name, words in (("folder", [parts]), ("pattern", [f"{parts}/[abc].jsonl*"])):
        got = tnk(*run, folder / f"by-{name}", *words)
        check(got.returncode == 0 and metrics(folder / f"by-{name}") == metrics(plain), f"a {name}", got)
    got = subprocess.run([TNK, *map(str, run), folder / "by-pipe", "-"], input=data.read_text(), env=CLEAN,
                         capture_output=True, text=True, timeout=120)
    check(got.returncode == 0 and metrics(folder / "by-pipe") == metrics(plain), "a pipe", got)
    # A frame of zstd with one raw block.
    content = data.read_bytes()
    packed = b"\x28\xb5\x2f\xfd\xa0" + len(content).to_bytes(4, "little") + (
        len(content) << 3 | 1).to_bytes(3, "little") + content
    (folder / "packed.jsonl.zst").write_bytes(packed)
    got = tnk(*run, folder / "by-zstd", folder / "packed.jsonl.zst")
    check(got.returncode == 0 and metrics(folder / "by-zstd") == metrics(plain), "a file of zstd", got)
    (folder / "bare").mkdir()
    cut = gzip.compress(content)[:-9]
    for name, content, words in (("cut.gz", cut, "cut.gz: it is not a whole gzip file"),
                                 ("cut.zst", packed[:-9], "cut.zst: it is not a whole zstd file"),
                                 ("bare", None, "bare: the folder has no file"),
                                 ("x*.jsonl", None, "x*.jsonl: No such file")):
        if content is not None:
            (folder / name).write_bytes(content)
        got = tnk("train", folder / name, "--local", "--run", folder / "none")
        check(got.returncode == 6 and words in got.stderr and not (folder / "none").exists(), words, got)
    (folder / "tokenizer.json").write_text("")
    got = tnk("train", data, "--local", "--tokenizer", folder / "tokenizer.json", "--run", folder / "none")
    check(got.returncode == 6 and f"{folder / 'tokenizer.json'}: the file is empty" in got.stderr, "its tokenizer", got)


def lost_checkpoints(folder, data):
    """A service without the checkpoints: the run does not begin again."""
    run = folder / "moved"
    got = tnk("train", data, "--local", "--run", run, *RUN, "--timeout", 0)
    check(got.returncode == 0, "a run", got)
    lines = (run / "checkpoints.jsonl").read_text().splitlines(True)
    first = next(i for i, line in enumerate(lines) if '"tnk":"saved"' in line)
    (run / "checkpoints.jsonl").write_text("".join(lines[:first + 1]))
    (run / "served").rename(run / "gone")
    got = tnk("train", data, "--local", "--run", run, *RUN)
    check(got.returncode == 4 and "none of the checkpoints" in got.stderr, "its checkpoints are gone", got)
    check(len(metrics(run).splitlines()) == STEPS, "its metrics stay", metrics(run))


def reduction(folder):
    """With mean, the weights of each example have the sum 1."""
    two = write(folder / "two.jsonl", [chat("a", "b"), chat("c", "d" * 40)])
    examples = [json.loads(line) for line in tnk("chat-data", two).stdout.splitlines()]
    for example in examples:
        weights_of = example["loss_fn_inputs"]["weights"]
        weights_of["data"] = [x / sum(weights_of["data"]) for x in weights_of["data"]]
    given = write(folder / "given.jsonl", examples)

    def losses(name, data, *args):
        run = folder / f"reduction-{name}"
        got = tnk("train", data, "--local", "--run", run, "--learning-rate", "0.01", "--steps", 3, *args)
        check(got.returncode == 0, f"trains with {name}", got)
        return [json.loads(line)["train/loss"] for line in metrics(run).splitlines()]

    whole, mean = losses("none", two), losses("mean", two, "--reduction", "mean")
    third = losses("given", given)
    check(max(abs(a - b) for a, b in zip(mean, third)) < 1e-6 < abs(mean[2] - whole[2]), "each example has the same weight",
          (whole, mean, third))
    got = tnk("train", two, "--local", "--run", folder / "reduction-none", "--learning-rate", "0.01",
              "--steps", 3, "--reduction", "mean")
    check(got.returncode == 6 and '--reduction is "none" there and "mean" here' in got.stderr,
          "another reduction is another run", got)
    got = tnk("train", two, "--local", "--dry-run", "--method", "dpo", "--reduction", "mean")
    check(got.returncode == 2 and "--reduction needs --method sft" in got.stderr, "only for conversations", got)


def by_tokens(folder, data):
    """Each step has as many examples as fit. The stored configuration makes the same run."""
    args = ("--local", "--batch-tokens", 100, "--epochs", 2)
    said = json.loads(tnk("train", data, *args, "--dry-run", "--json").stdout)
    shown = tnk("train", data, *args, "--dry-run").stdout
    check(said["batch_tokens"] == 100 and "tokens of a batch" in shown and "largest batch" in shown,
          "a dry run shows it", (said, shown))
    got = tnk("train", data, *args, "--run", folder / "by-tokens")
    lines = [json.loads(line) for line in metrics(folder / "by-tokens").splitlines()]
    used = [line["tokens"] for line in lines]
    check(got.returncode == 0 and len(lines) == said["steps"] and sum(used) == said["trained_tokens"] and
          max(used) <= 100 and min(used[:-1]) > 100 - said["longest"] and lines[-1]["epoch"] == 2,
          "the steps are full", (said, used))
    got = tnk("train", "--config", folder / "by-tokens" / "config.json", "--run", folder / "by-tokens-again")
    again = [json.loads(line) for line in metrics(folder / "by-tokens-again").splitlines()]
    check(got.returncode == 0 and again == lines, "its configuration can be given", (lines, again))
    for more, status, words in ((("--batch", 4), 2, "either --batch or --batch-tokens"),
                                (("--batch-tokens", 99), 6, "--batch-tokens is 100 there and 99 here")):
        got = tnk("train", data, *args, *more, "--run", folder / "by-tokens")
        check(got.returncode == status and words in got.stderr, f"refused: {words}", got)


def last_batch(folder, data):
    """25 examples in batches of 4: the seventh step of an epoch has one, and that of seven steps has four."""
    by_epochs, by_steps = ("--epochs", 1), ("--steps", 7)
    for name, given, n, others in (("epochs", by_epochs, 1, "--steps is not set there and 7 here"), ("", (), 1, ""),
                                   ("steps", by_steps, 4, "--steps is 7 there and not set here")):
        run, again = folder / f"last-{name}", folder / f"last-{name}-again"
        got = tnk("train", data, "--local", *RATES, *given, "--run", run)
        lines = [json.loads(line) for line in metrics(run).splitlines()]
        check(got.returncode == 0 and len(lines) == 7 and n * 25 < lines[-1]["tokens"] < n * 35, f"the last of {given}", lines)
        got = tnk("train", "--config", run / "config.json", "--run", again)
        check(got.returncode == 0 and metrics(again) == metrics(run), f"{given}: the stored configuration has the same last step", got)
        if others:
            got = tnk("train", data, "--local", *RATES, *(by_steps if name == "epochs" else by_epochs), "--run", run)
            check(got.returncode == 6 and others in got.stderr, f"{given}: another last step is another run", got)
    got = tnk("train", data, "--local", *RATES, "--run", folder / "last-epochs")
    check(got.returncode == 0, "one epoch is the default", got)


def bad_input(folder, data):
    bad = folder / "bad.jsonl"
    bad.write_text(json.dumps(CHATS[0]) + "\n\nnonsense\n" +
                   json.dumps({"messages": [{"role": "user"}]}) + "\n" +
                   json.dumps({"messages": [{"role": "user", "content": "Hi"}]}) + "\n")
    got = tnk("train", data, bad, "--local", "--run", folder / "none")
    check(got.returncode == 1 and all(f"bad.jsonl:{n}: " in got.stderr for n in (3, 4, 5)) and
          "content" in got.stderr and "3 of 29 conversations" in got.stderr, "bad lines are named", got)
    check(not (folder / "none").exists(), "and nothing was begun")
    (folder / "empty.jsonl").write_text("\n")
    for args, status, words in (
            ([folder / "nowhere", "--local"], 6, "nowhere"),
            ([folder / "empty.jsonl", "--local"], 6, "no conversation"),
            ([data, "--local", "--eval", folder / "nowhere"], 6, "nowhere"),
            ([data, "--local", "--warm-up", 99], 2, "--warm-up"),
            ([data, "--local", "--max-length", 3], 1, "no example is left")):
        got = tnk("train", *args, "--run", folder / "none")
        check(got.returncode == status and words in got.stderr, f"refused: {words}", got)
    for args, words in (([], "--model"), (["--model", "a/b"], "--template"),
                        (["--local", "--steps", "0"], "--steps"),
                        (["--local", "--steps", "1", "--epochs", "1"], "--epochs"),
                        (["--local", "--learning-rate", "x"], "--learning-rate"),
                        (["--local", "--eval-split", "0.6"], "--eval-split"),
                        (["--local", "--eval-split", "0.1", "--eval", "x"], "--eval-split"),
                        (["--local", "--eval-every", "1"], "--eval-every"),
                        (["--local", "--schedule", "sine"], "constant, linear or cosine"),
                        (["--local", "--base-url", "http://127.0.0.1:1"], "--base-url"),
                        (["--local", "--train-on", "roles"], "--role"),
                        (["--local", "--epoch", "2"], "did you mean \"--epochs\"")):
        got = tnk("train", data, "--run", folder / "none", *args)
        check(got.returncode == 2 and words in got.stderr, f"refused: {' '.join(args)}", got)
    got = tnk("train", data, "--local")
    check(got.returncode == 2 and "--run" in got.stderr, "a run without a folder", got)
    check(not (folder / "none").exists(), "still nothing was begun")


def missing_model(folder, data):
    with Local("--faults", "422/create_model@1-", "--model", "a/b") as server:
        got = server("train", data, "--model", "tnk/byte-lm", "--run", folder / "missing")
        check(got.returncode == 4 and "tnk model list" in got.stderr, "a model that there is not", got)


def sent_before_results(folder, data, n_steps, save_every, n_polls):
    """What a run sends if only the first polls are answered. Returns the number of requests, counted
    until each has been polled for more than once, so that no further request follows."""
    n = dict.fromkeys(("/forward_backward ", "/optim_step ", "/save_weights ", "/retrieve_future "), 0)
    with Local("--verbose", "--faults", f"try_again/retrieve_future@{n_polls + 1}-:active") as server:
        with subprocess.Popen([TNK, "train", data, "--model", "tnk/byte-lm", "--run",
                               folder / f"full-{n_steps}-{save_every}", *map(str, RUN), "--eval-every", "1",
                               "--steps", str(n_steps), "--save-every", str(save_every)],
                              env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            while n["/retrieve_future "] < n_polls + 80:
                line = server.process.stderr.readline()
                for name in n:
                    n[name] += name in line
            process.kill()
    return n


def pipelined(folder, data):
    """Up to eight steps with their evaluations are called before the first result. The first save
    and the last one wait for all results of their steps. In one row the results of four steps
    and of the first save are sent, and one more. With frequent saves as many are called as eight steps
    need."""
    for n_steps, save_every, n_polls, n_sent, n_saves in ((STEPS, 50, 1, 8, 0), (STEPS, 4, 1, 4, 0), (3, 50, 1, 3, 0),
                                                          (8, 4, 1 + 4 * 3 + 2, 8, 1), (STEPS, 1, 1 + 3, 9, 8),
                                                          (STEPS, 2, 1 + 2 * 3, 10, 4), (STEPS, 3, 1 + 3 * 3, 11, 3)):
        n = sent_before_results(folder, data, n_steps, save_every, n_polls)
        check(n["/optim_step "] == n_sent and n["/forward_backward "] == 2 * n_sent and n["/save_weights "] == n_saves,
              f"{n_sent} steps and {n_saves} saves are called", n)


def times(folder, data):
    """The time of a run and of its phases, also if it is interrupted."""
    args = ["train", data, "--local", *RATES, "--steps", 4, "--eval-split", "0.2", "--sample", "1?"]
    got = tnk(*args, "--run", folder / "times")
    check(len(re.findall(r"^time \S+ \S+, waiting for steps \S+ \S+, evaluations \S+ \S+, saves \S+ \S+, "
                         r"samples \S+ \S+$", got.stderr, re.M)) == 1, "the time by phase", got.stderr)
    got = tnk(*args, "--run", folder / "times", "--json")
    said = json.loads(got.stdout)
    names = ("steps_ms", "evaluations_ms", "saves_ms", "samples_ms")
    check(said["time_ms"] == 0 == sum(said[name] for name in names), "nothing was trained", said)
    said = json.loads(tnk(*args, "--run", folder / "times-json", "--json").stdout)
    check(all(said[name] > 0 for name in names) and sum(said[name] for name in names) <= said["time_ms"],
          "the time in JSON", said)


def verbose(folder, data):
    """Each request is printed, also one that is repeated."""
    with Local("--faults", "503/optim_step@1") as server:
        got = server("train", data, "--model", "tnk/byte-lm", "--run", folder / "verbose", "--steps", 2, "--verbose")
    lines = [line.removeprefix("tnk: ") for line in got.stderr.splitlines() if line.startswith("tnk: ")]
    for words, n in (("forward_backward ", 2), ("optim_step ", 2), ("ledger", 0)):
        check(sum(line.startswith(words) and "status 200" in line for line in lines) == n, f"answers to {words}", lines)
    check(sum(line.startswith("optim_step ") and "request of " in line for line in lines) == 3 and
          sum("attempt 1 failed (HTTP 503)" in line for line in lines) == 1, "a retry", lines)


def dry(folder, data):
    got = tnk("train", data, data, "--local", "--dry-run", "--json", "--epochs", 3, "--batch", 8,
              "--eval-split", "0.1", "--max-length", 24)
    said = json.loads(got.stdout)
    check(got.returncode == 0 and said["examples"] == 45 and said["eval_examples"] == 5 and
          said["steps"] == 17 and said["batch"] == 8 and said["trained_tokens"] == 3 * said["tokens"] + 5 * 23 and
          said["cost_usd"] is None and said["longest"] == 23 and said["learning_rate"] == 0.01,
          "a dry run", said)
    whole = json.loads(tnk("train", data, "--local", "--dry-run", "--json").stdout)
    check(said["cut"] > 0 and said["left_out"] == 0 and whole["cut"] == 0 and whole["longest"] > 23,
          "examples that are cut are counted", (said, whole))
    said = json.loads(tnk("train", data, "--local", "--dry-run", "--json", *RUN).stdout)
    used = sum(json.loads(line)["tokens"] for line in metrics(folder / "plain").splitlines())
    evaluated = 4 * (whole["tokens"] - said["tokens"])
    check(said["trained_tokens"] == used + evaluated and said["steps"] == STEPS,
          "the tokens of a run are those planned", said)
    prices = folder / "prices.json"
    prices.write_text('{"prices": [{"prompt": 1, "sampled": 1, "trained": 9},'
                      ' {"model": "tnk/byte-lm", "prompt": 1, "sampled": 1, "trained": 2000}]}')
    got = tnk("train", data, "--local", "--dry-run", "--prices", prices)
    cost = f"{whole['tokens'] * 0.002:.2f} USD"
    check(got.returncode == 0 and cost in got.stdout, "its cost", (cost, got.stdout))
    prices.write_text("[]")
    got = tnk("train", data, "--local", "--dry-run", "--prices", prices)
    check(got.returncode == 6 and "prices.json" in got.stderr, "prices that are none", got)
    got = tnk("train", data, "--dry-run", "--model", "x/Foo-8B", "--template", folder / "nowhere", "--tokenizer", "x")
    check(got.returncode == 6, "a tokenizer that there is not", got)


def planned_samples(folder, data):
    """A dry run counts the most that the samples can use, and so does a limit: 200 tokens to a prompt of 20."""
    prices = folder / "samples.json"
    prices.write_text('{"prices": [{"prompt": 3000, "sampled": 5000, "trained": 7000}]}')
    base = ["train", data, "--local", *RATES, "--steps", 7, "--prices", prices]
    without = json.loads(tnk(*base, "--dry-run", "--json").stdout)
    check("max_tokens" not in without, "no samples", without)
    for every, times in ((0, 2), (1, 8), (2, 5), (3, 4), (7, 2), (9, 2)):
        ask = ("--sample", "1?", "--sample", "2?", "--sample-every", every)
        said = json.loads(tnk(*base, *ask, "--dry-run", "--json").stdout)
        n, trained = 2 * times, without["trained_tokens"]
        check(said["trained_tokens"] == trained and said["max_sampled_tokens"] == n * 200 and
              said["max_tokens"] == trained + n * 220 and
              abs(said["cost_usd"] - without["cost_usd"] - n * (20 * 3000 + 200 * 5000) / 1e6) < 1e-6,
              f"samples every {every} steps", said)
    shown = tnk(*base, "--sample", "1?", "--dry-run").stdout
    check("highest cost" in shown and "most tokens" in shown and re.search(r"^samples +2$", shown, re.M), "the plan shows them", shown)
    args = ["train", data, "--local", *RATES, "--steps", 1, "--sample", "1?", "--run"]
    check(tnk(*args, folder / "unlimited").returncode == 0, "a run with samples")
    used = [json.loads(line) for line in (folder / "unlimited" / "checkpoints.jsonl").read_text().splitlines()][-1]
    n = sum(used[f"tnk_{kind}_tokens"] for kind in ("prompt", "sampled", "trained"))
    got = tnk(*args, folder / "limited", "--max-tokens", n - 1)
    check(got.returncode == 1 and "the next step would exceed the limit" in got.stderr and "missing" not in got.stderr and
          not (folder / "limited" / "metrics.jsonl").exists(), "a step whose samples would exceed a limit is not begun", (n, got))


def sampled_first(folder, data):
    """The samples of step 0 are all there, at whichever request the server is killed."""
    prompts = [f"{i}?" for i in range(5)]
    args = [data, "--steps", 2, *RATES, *sum((("--sample", p) for p in prompts), ())]
    for at in (8, 9, 12, 17):
        pair = Pair(folder / f"first-{at}", args)
        code = pair.all("server", (at,))
        lines = [json.loads(line) for line in (pair.run / "samples.jsonl").read_text().splitlines()]
        found = [line["prompt"] for line in lines if line["step"] == 0]
        check(code == 0 and pair.n_again == 0 and found == prompts, f"killed at {at}: the first samples",
              (code, pair.n_again, lines))


class Nth:
    """Whether a line is the n-th one with some words."""

    def __init__(self, words, n):
        self.words, self.n = words, n

    def __call__(self, line):
        self.n -= self.words in line
        return self.n == 0


def sampled_later(folder, data):
    """The samples of later steps are all there too, at whichever of their requests the server is killed: also those of
    the second step, whose state is saved before its samples. The weights of samples are deleted."""
    prompts = [f"{i}?" for i in range(3)]
    args = [data, "--steps", 3, *RATES, "--save-every", 1, "--sample-every", 1, *sum((("--sample", p) for p in prompts), ())]
    plain = folder / "later"
    got = tnk("train", *args, "--local", "--run", plain)
    want = (plain / "samples.jsonl").read_text()
    check(got.returncode == 0 and len(want.splitlines()) == 4 * 3, "samples of each step", got)
    for words, n in (("/save_weights_for_sampler ", 3), ("/create_sampling_session ", 3), ("/asample ", 7), ("/asample ", 8),
                     ("/asample ", 12)):
        pair = Pair(folder / f"later-{words.strip(' /')}-{n}", args)
        pair.until = Nth(words, n)
        code = pair.all("server", ())
        check(code == 0 and pair.n_again == 0 and (pair.run / "samples.jsonl").read_text() == want,
              f"killed at {words.strip()} {n}: the samples of all steps", (code, pair.n_again, pair.said))
        left = [path.name for path in pathlib.Path(f"{pair.run}-served").glob("*/sampler_weights/*")]
        check(all(name.startswith((".", "save-")) for name in left), "no weights of samples stay", left)
    for fault in ("404/asample@8", "404/asample@7,404/create_sampling_session@4", "404/asample@12"):
        run = folder / f"later-{fault.replace('/', '-')}"
        with Local("--faults", fault) as server:
            got = server("train", *args, "--model", "tnk/byte-lm", "--run", run)
        check(got.returncode == 0 and (run / "samples.jsonl").read_text() == want, f"{fault}: the sampler is made again", got)


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    chats = write(top / "chats.jsonl", CHATS)
    undisturbed = trains(top, chats)
    progress(top, chats)
    interrupted(top, chats, undisturbed)
    killed_without_a_state(top, chats, undisturbed)
    interrupted_with_steps_on_the_way(top, chats, undisturbed)
    sampled(top, chats, undisturbed)
    planned_samples(top, chats)
    sampled_first(top, chats)
    sampled_later(top, chats)
    killed_local(top, [chats, *RUN], undisturbed)
    killed_apart(top, [chats, *RUN], undisturbed)
    several_ahead(top, chats, undisturbed)
    for every in (1, 2):
        options = [chats, *RUN, "--save-every", every]
        killed_local(top, options, undisturbed, f"every-{every}")
        killed_apart(top, options, undisturbed, f"every-{every}")
        lost_result(top, options, undisturbed, 3, f"every-{every}")
    killed_at_the_end(top, [chats, *RUN], undisturbed)
    for at in (1, 3):
        lost_result(top, [chats, *RUN], undisturbed, at)
    unread_results(top, chats, undisturbed)
    unread_states(top, chats, undisturbed)
    unread_end(top, chats, undisturbed)
    seeds(top)
    reduction(top)
    by_tokens(top, chats)
    last_batch(top, chats)
    other_runs(top, chats, undisturbed)
    limits(top, chats, undisturbed)
    configuration(top, chats, undisturbed)
    inputs(top, chats, undisturbed)
    lost_checkpoints(top, chats)
    bad_input(top, chats)
    missing_model(top, chats)
    pipelined(top, chats)
    times(top, chats)
    verbose(top, chats)
    dry(top, chats)
plan()
