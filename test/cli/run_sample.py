#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk sample against the local server.

usage: run_sample.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from console import CLEAN, TNK, Local, check, plan

MODEL = ("--model", "tnk/byte-lm")


def S_9_samples_from_text(local):
    said = local.json("sample", *MODEL, "--seed", 7, "--max-tokens", 20, "The")
    one, = said["samples"]
    check(said["model"] == "tnk/byte-lm" and said["checkpoint"] is None and
          said["prompt_tokens"] == [84, 104, 101] and len(one["tokens"]) == 20 and
          len(one["logprobs"]) == 20 and all(p < 0 for p in one["logprobs"]) and
          one["stop_reason"] == "length" and "prompt_logprobs" not in said, "in JSON", said)
    args = [TNK, "sample", *MODEL, "--seed", "7", "--max-tokens", "20"]
    env = {**CLEAN, **local.env}
    for more, given in ((["The"], b""), (["-"], b"The"), (["--tokens", "[84, 104 101]"], b"")):
        got = subprocess.run([*args, *more], env=env, input=given, capture_output=True, timeout=60)
        check(got.returncode == 0 and got.stdout == bytes(one["tokens"]) + b"\n",
              f"the same as text, byte by byte: {more}", got)
    with tempfile.TemporaryDirectory() as tmp:
        file = pathlib.Path(tmp, "prompt")
        file.write_bytes(b"a\0\xff")
        said = local.json("sample", *MODEL, "--max-tokens", 1, "--file", file)
        check(said["prompt_tokens"] == [97, 0, 255], "from a file, whatever it holds", said)
    said = local.json("sample", *MODEL, "--seed", 7, "--max-tokens", 20, "-n", 3,
                      "--prompt-logprobs", "The")
    check(len(said["samples"]) == 3 and said["samples"][0]["tokens"] == one["tokens"] and
          said["samples"][1]["tokens"] != one["tokens"], "several, each by another seed", said)
    check(said["prompt_logprobs"][0] is None and len(said["prompt_logprobs"]) == 3 and
          said["prompt_logprobs"][1] < 0, "with those of the prompt", said)
    got = local("sample", *MODEL, "--seed", 7, "--max-tokens", 2, "-n", 3, "a", encoding="latin-1")
    check(got.returncode == 0 and re.findall(r"^--- (\d) \(length\)$", got.stdout, re.M) ==
          ["1", "2", "3"], "several as text", got)
    greedy = [local.json("sample", *MODEL, "--temperature", 0, "--max-tokens", 5, "x")
              ["samples"][0]["tokens"] for _ in range(2)]
    check(greedy[0] == greedy[1], "the likeliest token each time", greedy)
    said = local.json("sample", *MODEL, "--temperature", 0.5, "--top-p", 0.9, "--top-k", 1,
                      "--max-tokens", 5, "x")
    check(said["samples"][0]["tokens"] == greedy[0], "from one token at a time", said)
    text = bytes(greedy[0]).decode("latin-1")
    if all(ord(c) < 128 for c in text[:1]) and text[0] != "\0":
        said = local.json("sample", *MODEL, "--temperature", 0, "--stop", text[0], "x")
        check(said["samples"][0]["stop_reason"] == "stop", "where a text ends it", said)


def S_9_samples_from_weights(local):
    session = local.session()
    model = local.model(session)
    path = local.save(model, "final", 1, "save_weights_for_sampler")
    said = local.json("sample", "--checkpoint", path, "--max-tokens", 3, "a")
    check(said["checkpoint"] == path and said["model"] == "tnk/byte-lm" and
          len(said["samples"][0]["tokens"]) == 3, "from a checkpoint", said)
    got = local("sample", "--checkpoint", path + "x", "a")
    check(got.returncode == 4 and path + "x" in got.stderr, "one that there is not", got)


def refused(local):
    for args, words in (([], "--model"), (["x"], "--model"), (MODEL, "TEXT"),
                        ([*MODEL, "--checkpoint", "tinker://a/b/c", "x"], "--checkpoint"),
                        ([*MODEL, "x", "--file", "y"], "--file"), ([*MODEL, "x", "y"], "\"y\""),
                        ([*MODEL, ""], "empty"), ([*MODEL, "--tokens", "1 x"], "\"x\""),
                        ([*MODEL, "--tokens", "99999999999"], "not a token id"),
                        ([*MODEL, "--temperature", "x", "a"], "0 to 100"),
                        ([*MODEL, "--temperature", "-1", "a"], "0 to 100"),
                        ([*MODEL, "--top-p", "1.5", "a"], "0 to 1"),
                        ([*MODEL, "--top-p", "nan", "a"], "0 to 1"),
                        ([*MODEL, "--max-tokens", "0", "a"], "--max-tokens"),
                        ([*MODEL, "-n", "0", "a"], ""), ([*MODEL, "--seed", "-1", "a"], "--seed"),
                        ([*MODEL, "--prompt-logprobs", "a"], "--json"),
                        (["--checkpoint", "nonsense", "a"], "tinker://")):
        got = local("sample", *args)
        check(got.returncode == 2 and words in got.stderr and not got.stdout,
              f"sample {' '.join(args)[:50]}", got)
    got = local("sample", *MODEL, "--file", "/nowhere")
    check(got.returncode == 6, "a file that there is not", got)
    got = local("sample", "--model", "nobody/nothing", "a", env={"HF_HUB_OFFLINE": "1"})
    check(got.returncode in (4, 6) and "--tokenizer" in got.stderr,
          "a tokenizer that there is not", got)
    # Nobody listens there: it is not the service that is not reached.
    for hub, status in (("http://127.0.0.1:9", 5), ("nonsense", None)):
        got = local("sample", "--model", "nobody/nothing", "a", "--json", env={"HF_ENDPOINT": hub})
        error = json.loads(got.stdout)["error"]
        check(error["code"] == "tokenizer" and "the tokenizer of nobody/nothing" in error["message"] and
              got.returncode == error["exit_status"] and status in (None, got.returncode),
              f"the hub {hub}", got)
    got = local("sample", "--model", "nobody/nothing", "--tokenizer", "/nowhere", "a")
    check(got.returncode == 6 and "/nowhere" in got.stderr, "nor as a file", got)


def a_model_that_the_service_does_not_have(local, folder):
    """The error names the model, and the service's list of models decides."""
    args = ("--tokenizer", folder, "a")
    for model, status in (("nobody/nothing", 4), (folder, 1)):
        got = local("sample", "--model", model, *args, "--json")
        error = json.loads(got.stdout)["error"]
        check(got.returncode == error["exit_status"] == status and
              error["code"] == "TNK_EREQUEST" and error["http_status"] == 422 and
              f"create_sampling of {model}: " in error["message"] and
              ("tnk model list" in error["hint"]) == (status == 4), f"{model} is refused", got)
    got = local("sample", "--checkpoint", "tinker://a:train:0/sampler_weights/b", *args)
    check(got.returncode == 1 and "create_sampling of tinker://a:train:0" in got.stderr and
          "tnk model list" not in got.stderr, "a checkpoint is no base model", got)


def ended(local):
    """Ctrl-C while a sample takes its time; the session is reported as finished."""
    run = subprocess.Popen([TNK, "sample", *MODEL, "--max-tokens", "1000000", "a"],
                           env={**CLEAN, **local.env}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "asample" not in local.process.stderr.readline():
        pass
    run.send_signal(signal.SIGINT)
    out, said = run.communicate(timeout=60)
    check(run.returncode == 130 and not out and "interrupted" in said, "Ctrl-C", (run, said))
    while "/finish" not in (line := local.process.stderr.readline()):
        pass
    check(" 200" in line, "its session is finished", line)


with Local() as server:
    S_9_samples_from_text(server)
    S_9_samples_from_weights(server)
    refused(server)
with tempfile.TemporaryDirectory() as tmp:
    own = str(pathlib.Path(tmp).resolve() / "own")
    with Local("--model-dir", own, "--faults", "422/create_sampling_session@1-") as server:
        a_model_that_the_service_does_not_have(server, own)
with Local("--latency-ms", "30000", "--verbose") as server:
    ended(server)
plan()
