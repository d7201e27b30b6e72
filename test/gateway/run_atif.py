#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk gateway --atif: trajectories of Harbor from a record.

usage: run_atif.py TNK_COMMAND

Harbor's own models validate them if Python finds `harbor.models.trajectories`, which
needs pydantic. TNK_TEST_HARBOR is a folder with an unpacked wheel of harbor.

Output is TAP, see test/support/tap.py.
"""
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

from gateway import CALLING, Client, gateway, local, turns_of
from tap import check, plan

TNK = sys.argv[1]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]
CALL = '<think>hm</think>Let me see.\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'


def harbor():
    """The class that validates, or None. Only its models are loaded: the package
    itself may need a later Python."""
    folder = os.environ.get("TNK_TEST_HARBOR")
    if folder:
        for name in ("harbor", "harbor.models"):
            module = types.ModuleType(name)
            module.__path__ = [str(pathlib.Path(folder, *name.split(".")))]
            sys.modules[name] = module
    try:
        return importlib.import_module("harbor.models.trajectories").Trajectory
    except ImportError:
        return None


def printed(record, *args):
    done = subprocess.run([TNK, "gateway", "--atif", record, *args], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"--atif {args}", done)
    return [json.loads(line) for line in done.stdout.splitlines()]


def make(folder):
    """Records a call with its result, a response in two parts, and a completion."""
    path = pathlib.Path(folder) / "record"
    said = pathlib.Path(folder) / "answers"
    said.write_text("".join(json.dumps(line) + "\n" for line in (CALL, "It is cut", " 2.", "plain")))
    template = pathlib.Path(folder) / "calling.jinja"
    template.write_text(CALLING)
    with local(TNK, "--stub", "--stub-answers", said) as stub, \
            gateway(TNK, stub, "--renderer", "qwen3", "--template", template, "--record", path) as g:
        client = Client(g.url, x_tnk_session="me")
        talk = [{"role": "system", "content": "be kind"},
                {"role": "user", "content": [{"type": "text", "text": "f"}, {"type": "text", "text": "?"}]}]
        a = client.chat(talk, tools=TOOLS, max_tokens=500)[1]["choices"][0]["message"]
        a.pop("reasoning_content", None)
        talk += [a, {"role": "tool", "tool_call_id": a["tool_calls"][0]["id"], "content": "2"}]
        b = client.chat(talk, tools=TOOLS, max_tokens=5)[1]
        c = client.chat([*talk, {"role": "assistant", "content": "It is"}], tools=TOOLS, max_tokens=3,
                        continue_final_message=True)[1]
        client.post("/tnk/reward", {"id": c["id"], "reward": 0.5})
        client.post("/v1/completions", {"prompt": "x"}, x_tnk_session="plain")
    check(b["choices"][0]["finish_reason"] == "length", "a response that is cut off", b)
    return path, b, c


def reads(path, b, c):
    turns = turns_of(path)
    whole = printed(path)
    check([t["session_id"] for t in whole] == ["me", "plain"], "one for each branch", whole)
    t, steps = whole[0], whole[0]["steps"]
    check([s["source"] for s in steps] == ["system", "user", "agent", "agent"], "the messages", steps)
    check([s["step_id"] for s in steps] == [1, 2, 3, 4] and steps[1]["message"] == "f?", "in order", steps)
    check(steps[2]["reasoning_content"] == "hm" and steps[2]["tool_calls"][0]["arguments"] == {"x": 1}, "a call", steps)
    check(steps[2]["observation"]["results"] == [{"source_call_id": steps[2]["tool_calls"][0]["tool_call_id"],
                                                  "content": "2"}], "with its result", steps[2])
    first, last = (turns[int(x["id"][9:])] for x in (b, c))
    check(last["parent"] == first["turn"] and last["prompt"] == [], "a response in two parts", last)
    got = steps[3]
    check(got["message"].strip() == "It is 2." and
          got["metrics"]["completion_token_ids"] == first["sampled"] + last["sampled"] and
          len(got["metrics"]["logprobs"]) == got["metrics"]["completion_tokens"] == 8, "is one step", got)
    check(got["extra"] == {"turn": last["turn"], "version": 1, "reward": 0.5} and got["timestamp"].endswith("Z"),
          "its turn and its reward", got)
    check(t["agent"]["tool_definitions"] == TOOLS and t["schema_version"] == "ATIF-v1.7", "the tools", t["agent"])
    check(t["final_metrics"]["total_completion_tokens"] == sum(len(x["sampled"]) for x in turns.values()
                                                               if x["session"] == "me"), "totals", t["final_metrics"])
    check(printed(path, "--rewarded") == whole[:1], "those with a reward")
    return whole


def main():
    with tempfile.TemporaryDirectory() as folder:
        whole = reads(*make(folder))
        validator = harbor()
        for t in whole:
            if validator:
                check(validator.model_validate(t).session_id == t["session_id"], "Harbor's models accept it")
            else:
                check(True, "Harbor's models accept it # SKIP no harbor.models.trajectories")
        for args, why in ((("--atif", "x", "--datums", "y"), "exclude each other"),
                          (("--atif", "x", "--model", "m"), "do not start a gateway"),
                          (("--atif", pathlib.Path(folder) / "none"), "none")):
            done = subprocess.run([TNK, "gateway", *map(str, args)], capture_output=True, text=True, timeout=60)
            check(done.returncode != 0 and why in done.stderr, f"{args}: {why}", done)
    plan()


main()
