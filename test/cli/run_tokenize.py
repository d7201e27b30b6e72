#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk tokenize and tnk detokenize, as a person would run them.

usage: run_tokenize.py TNK_COMMAND DATA_DIR

Output is TAP, see test/support/tap.py.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from file_hub import COMMIT, FileHub
from tap import check, plan

TNK, DATA = sys.argv[1:3]
MODEL = ["--tokenizer", DATA + "/qwen2.json"]


def run(*args, data=b""):
    return subprocess.run([TNK, *args], input=data, capture_output=True,
                          timeout=60)


def check_models(want):
    """tnk tokenize --model, against a hub on this machine."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    with tempfile.TemporaryDirectory() as home, \
            FileHub("org/model", {"tokenizer.json": DATA + "/qwen2.json"}) as hub:
        env = {**keep, **hub.env(home), "HF_TOKEN": "hf_canary"}

        def ask(*args, **more):
            return subprocess.run([TNK, *args], capture_output=True, timeout=60,
                                  env={**env, **more})

        got = ask("tokenize", "--model", "org/model", "--text", "Hello")
        check(got.stdout == want and got.stderr == b"", "--model downloads",
              got)
        link = pathlib.Path(home, "hub/models--org--model/snapshots", COMMIT,
                            "tokenizer.json")
        check(link.is_symlink() and link.read_bytes() == hub.files["tokenizer.json"],
              "into the cache", link)
        n = len(hub.seen)
        got = ask("tokenize", "--model", "org/model:variant", "--revision",
                  COMMIT, "--text", "Hello")
        check(got.stdout == want and len(hub.seen) == n,
              "--revision of a commit asks nobody", hub.seen[n:])
        got = ask("detokenize", "--model", "org/model", *want.decode().split(),
                  HF_HUB_OFFLINE="1")
        check(got.stdout == b"Hello" and len(hub.seen) == n,
              "HF_HUB_OFFLINE asks nobody", got)
        got = ask("tokenize", "--model", "org/none", "--text", "Hello")
        check(got.returncode == 4 and b"Repository not found" in got.stderr and
              b"canary" not in got.stderr, "an unknown model", got)
    got = run("tokenize", "--model", "a/b", *MODEL, "--text", "x")
    check(got.returncode == 2, "not both --model and --tokenizer", got)
    got = run("tokenize", "--revision", "x", *MODEL, "--text", "x")
    check(got.returncode == 2, "--revision without --model", got)


def main():
    check_models(run("tokenize", *MODEL, "--text", "Hello").stdout)
    text = "Word 中文 é\n<|im_end|> \"x\"\t"
    got = run("tokenize", *MODEL, data=text.encode())
    ids = got.stdout.split()
    check(got.returncode == 0 and ids, "ids of the standard input", got)
    back = run("detokenize", *MODEL, *map(bytes.decode, ids))
    check(back.stdout.decode() == text, "and back", back)
    back = run("detokenize", *MODEL, data=b"[" + b", ".join(ids) + b"]")
    check(back.stdout.decode() == text, "ids from the standard input", back)
    back = run("detokenize", *MODEL, "--skip-special", "--json",
               *map(bytes.decode, ids))
    check(json.loads(back.stdout) == {"text": text.replace("<|im_end|>", "")},
          "without special tokens, as JSON", back)
    got = run("tokenize", *MODEL, "--count", "--text", text)
    check(int(got.stdout) == len(ids), "--count", got)
    got = run("tokenize", *MODEL, "--json", "--pieces", "--text", text)
    found = json.loads(got.stdout)
    check(found["ids"] == [int(i) for i in ids] and
          found["count"] == len(ids) == len(found["pieces"]) and
          found["pieces"][-1]["end"] == len(text.encode()),
          "--json --pieces", got)
    got = run("tokenize", *MODEL, "--pieces", "--text", "a<|im_end|>")
    lines = got.stdout.decode().splitlines()
    check(len(lines) == 2 and lines[1].endswith(' 1 11 "<|im_end|>"'),
          "--pieces", got)
    got = run("tokenize", *MODEL, "--plain", "--text", "<|im_end|>")
    check(len(got.stdout.split()) > 1, "--plain", got)
    got = run("tokenize", *MODEL, "--add-special", "--text", "")
    check(len(got.stdout.split()) == 1, "--add-special", got)
    got = run("tokenize", *MODEL, data=b"ab\xff")
    check(got.returncode == 1 and b"byte 2" in got.stderr, "no UTF-8", got)
    got = run("tokenize", *MODEL, "--lossy", data=b"ab\xff")
    check(got.returncode == 0, "--lossy", got)
    got = run("tokenize", "--tokenizer", DATA + "/none", data=b"")
    check(got.returncode == 6 and b"none" in got.stderr, "no such file", got)
    for data in (b"12\x001", b"1.5", b"\x1b[31m", b"-1", b"9" * 30):
        got = run("detokenize", *MODEL, data=data)
        check(got.returncode == 1 and got.stdout == b"" and
              b"\x1b" not in got.stderr, "no ids: %r" % data, got)
    got = run("detokenize", *MODEL, data=b"99999999")
    check(got.returncode == 0 and got.stdout == b"", "an id of no token", got)
    got = run("tokenize", *MODEL, DATA)
    check(got.returncode == 6 and DATA.encode() in got.stderr, "a folder", got)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            got = subprocess.run([TNK, "tokenize", *MODEL, "--text", "x"],
                                 stdout=full, stderr=subprocess.PIPE)
        check(got.returncode == 6 and got.stderr != b"", "a full disk", got)
    got = run("detokenize", "--tokenizer")
    check(b"needs a value" in got.stderr, "detokenize without a value", got)
    for args in (["tokenize"], ["tokenize", *MODEL, "--nonsense"],
                 ["tokenize", "--tokenizer"], ["detokenize"],
                 ["detokenize", *MODEL, "--nonsense"]):
        got = run(*args)
        check(got.returncode == 2 and b"--help" in got.stderr,
              " ".join(a for a in args if "/" not in a), got)
    got = run("detokenize", *MODEL, "12x")
    check(got.returncode == 1 and b"no id: x" in got.stderr, "12x", got)
    for command in ("tokenize", "detokenize"):
        got = run(command, "--help")
        check(got.returncode == 0 and b"usage" in got.stdout,
              f"{command} --help", got)
    plan()


main()
