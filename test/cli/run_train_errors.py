#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train: what goes wrong gets a clear message and status, and nothing is lost.

usage: run_train_errors.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json
import pathlib
import resource
import signal
import tempfile

from console import Local, check, forward, plan, scripted, tnk
from train_runs import chat, metrics, weights, write

CHATS = [chat(f"{i % 5}?", "ab" * (1 + i % 3)) for i in range(25)]
RUN = ("--steps", 9, "--batch", 4, "--learning-rate", "0.01", "--save-every", 3)
PROMPT = {"prompt": "Hi"}

# (kind, line, words of the message); a line is JSON or a text.
BAD_LINES = (
    ("no JSON", "nonsense", ("bad.jsonl:2: ",)),
    ("no object", "[1]", ("bad.jsonl:2: ",)),
    ("no messages", {"text": "Hi"}, ("bad.jsonl:2: ", "messages")),
    ("messages that are none", {"messages": "Hi"}, ("bad.jsonl:2: ", "messages")),
    ("no content", {"messages": [{"role": "user"}]}, ("bad.jsonl:2: ", "content")),
    ("no role", {"messages": [{"content": "Hi"}]}, ("bad.jsonl:2: ", "role")),
    ("no answer", {"messages": [{"role": "user", "content": "Hi"}]}, ("bad.jsonl:2: ",)),
    ("no completion", PROMPT, ("bad.jsonl:2: ", "completion")),
    ("another completion", {**PROMPT, "completion": 1}, ("bad.jsonl:2: ", "completion")),
)
# (kind, arguments, status, words)
BAD_OPTIONS = (
    ("an unknown option", ("--local", "--epoch", 2), 2, ("--epoch", "--epochs")),
    ("no learning rate", ("--local", "--learning-rate", 0), 2, ("--learning-rate must be above 0",)),
    ("no money", ("--local", "--max-usd", 0), 2, ("--max-usd must be above 0",)),
    ("no beta", ("--local", "--method", "dpo", "--beta", "0.0"), 2, ("--beta must be above 0",)),
    ("a misspelled option", ("--local", "--learning-rte", 2), 2, ("--learning-rte", "--learning-rate")),
    ("an unknown schedule", ("--local", "--schedule", "cosin"), 2, ("--schedule", "cosine")),
    ("an unknown method", ("--local", "--method", "dop"), 2, ("--method", "dpo")),
    ("no number", ("--local", "--batch", "x"), 2, ("--batch",)),
    ("no model", (), 2, ("--model", "--local")),
    ("a file that there is not", ("--local", "--eval", "nowhere.jsonl"), 6, ("nowhere.jsonl",)),
)


# Options of other methods, also with the value that is their default. (option, values, its methods)
OF_METHODS = (("--loss", ("importance_sampling", "ppo", "cispo", "gspo", "dro"), ("rl", "distill")),
              ("--loss-setting", ("beta=1",), ("rl", "distill")),
              ("--advantages", ("auto", "given", "centered", "normalized", "leave-one-out"), ("rl",)))


def of_other_methods(folder, data):
    for option, values, methods in OF_METHODS:
        for method in ("sft", "dpo", "distill"):
            for value in values if method not in methods else ():
                more = ("--teacher", "a/b") if method == "distill" else ()
                got = tnk("train", data, "--local", "--dry-run", "--method", method, *more, option, value)
                check(got.returncode == 2 and f"{option} needs --method {' or '.join(methods)}" in got.stderr,
                      f"{option} {value} with {method} is refused", got)
    got = tnk("train", data, "--local", "--dry-run", "--method", "distill", "--teacher", "a/b", "--loss", "importance_sampling")
    check(got.returncode == 0, "the default of --loss may be given to distill", got)


def bad_lines(folder):
    for kind, line, words in BAD_LINES:
        (folder / "bad.jsonl").write_text(json.dumps(CHATS[0]) + "\n" +
                                          (line if isinstance(line, str) else json.dumps(line)) + "\n")
        got = tnk("train", folder / "bad.jsonl", "--local", "--run", folder / "none")
        check(got.returncode == 1 and all(word in got.stderr for word in words), f"{kind}: the line is named",
              (words, got))
        check(not (folder / "none").exists(), f"{kind}: nothing was begun")


def bad_options(folder, data):
    for kind, args, status, words in BAD_OPTIONS:
        got = tnk("train", data, *args, "--run", folder / "none")
        check(got.returncode == status and all(word in got.stderr for word in words), f"{kind}: it is named",
              (words, got))
        check(not (folder / "none").exists(), f"{kind}: nothing was begun")


def whole_run(folder, data):
    """Make the run with which the others are compared."""
    run = folder / "plain"
    got = tnk("train", data, "--local", "--run", run, *RUN)
    check(got.returncode == 0, "it trains", got)
    return run


def goes_on(kind, folder, data, run, plain):
    """The same command ends as if nothing had happened."""
    with Local("--data", folder / "server") as server:
        got = server("train", data, "--model", "tnk/byte-lm", "--run", run, *RUN)
    check(got.returncode == 0 and metrics(run) == metrics(plain) and
          weights(run, folder / "server") == weights(plain, plain / "served"),
          f"{kind}: the same command continues, and nothing is lost", got)


# (kind, fault, status, words)
REFUSALS = (
    ("no credit at first", "402/create_model@1-", 1, ("402", "credit")),
    ("a key that is no longer valid", "401/forward_backward@6-", 3, ("401",)),
)


def refused(folder, data, plain):
    for i, (kind, fault, status, words) in enumerate(REFUSALS):
        run = folder / f"refused-{i}"
        with Local("--data", folder / "server", "--faults", fault) as server:
            got = server("train", data, "--model", "tnk/byte-lm", "--run", run, *RUN)
        check(got.returncode == status and all(word in got.stderr for word in words), f"{kind}: it is said",
              (words, got))
        goes_on(kind, folder, data, run, plain)


def other_tokenizers(folder, data):
    """Bytes are no tokens of a model whose tokenizer the service names. It may name none, or the model has none."""
    for i, (named, is_refused) in enumerate(((None, 0), ("", 0), ("tnk/bytes", 0), ("tnk/bytes:1", 0), ("Qwen/Qwen3-8B", 1))):
        run = folder / f"tokenizer-{i}"
        with Local() as server, scripted(with_tokenizer(server, named)) as (url, _):
            got = tnk("train", data, "--model", "tnk/byte-lm", "--run", run, "--steps", 1,
                      env={"TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"})
        check(got.returncode == is_refused and
              ("tnk/byte-lm has the tokenizer Qwen/Qwen3-8B: --tokenizer must be that one" in got.stderr) == is_refused and
              (run / "metrics.jsonl").exists() == (not is_refused), f"the service names the tokenizer {named!r}", got)


def with_tokenizer(server, named):
    """Answers a request as the server does, but names this tokenizer; None for a server that names none."""
    def change(path, answer):
        if path.endswith("/get_info"):
            answer["model_data"]["tokenizer_id"] = named
            if named is None:
                del answer["model_data"]["tokenizer_id"]
    return forward(server, change)


def full_disk(folder, data, plain):
    """A limit of the size of files stands for a full disk. SIGXFSZ is not a way to learn of it."""
    def limit(n):
        def apply():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))
        return apply

    size = (plain / "config.json").stat().st_size
    for kind, n, name in (("the configuration", size // 2, "config.json"),
                          ("the metrics or the ledger", size + 16, "full-1")):
        run = folder / f"full-{0 if name == 'config.json' else 1}"
        with Local("--data", folder / "server") as server:
            got = server("train", data, "--model", "tnk/byte-lm", "--run", run, *RUN, preexec_fn=limit(n))
        check(got.returncode == 6 and name in got.stderr and "too large" in got.stderr.lower(),
              f"a full disk for {kind}: the file is named", got)
        goes_on(f"a full disk for {kind}", folder, data, run, plain)


def other_folders(folder, data, plain):
    before = metrics(plain)
    other = write(folder / "other.jsonl", CHATS[1:])
    (folder / "taken").mkdir()
    (folder / "taken" / "notes.txt").write_text("mine")
    for kind, args, words in (
            ("another rank", (data, "--run", plain, *RUN, "--rank", 4), ("--rank is 32 there and 4 here",)),
            ("other data", (other, "--run", plain, *RUN), ("other.jsonl", "another run")),
            ("a folder with files", (data, "--run", folder / "taken", *RUN), ("taken", "config.json"))):
        got = tnk("train", "--local", *args)
        check(got.returncode == 6 and all(word in got.stderr for word in words), f"{kind}: it is refused",
              (words, got))
    check(metrics(plain) == before and [p.name for p in (folder / "taken").iterdir()] == ["notes.txt"],
          "nothing has changed there")


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    chats = write(top / "chats.jsonl", CHATS)
    bad_lines(top)
    bad_options(top, chats)
    of_other_methods(top, chats)
    undisturbed = whole_run(top, chats)
    refused(top, chats, undisturbed)
    full_disk(top, chats, undisturbed)
    other_tokenizers(top, chats)
    other_folders(top, chats, undisturbed)
plan()
