#!/usr/bin/env python3
"""The commands over what a service keeps, against the local server.

usage: run_rest.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json
import re

from console import Local, check, plan, tnk


def runs(local):
    got = local("run", "list")
    check((got.returncode, got.stdout, got.stderr) == (0, "", "No training runs.\n"),
          "a list of nothing says so beside the output", got)
    session = local.session()
    ids = [local.model(session) for _ in range(3)]
    local.save(ids[0], "first", 1)
    got = local("run", "list")
    lines = got.stdout.splitlines()
    check(lines[0].split("  ")[0] == "Run ID" and len(lines) == 4 and
          all(any(line.startswith(i + " ") for line in lines) for i in ids),
          "each run has a line", got)
    check(re.search(r"tnk/byte-lm +Rank 2 +just now +OK$", lines[1]),
          "with what is to be known of it", lines)
    got = local("run", "list", "--limit", 2)
    check(len(got.stdout.splitlines()) == 3 and
          got.stderr == "2 of 3 training runs; --limit 0 lists all.\n",
          "a limit is told", got)
    said = local.json("run", "list", "--limit", 2)
    check(len(said["runs"]) == 2 and said["total"] == 3 and said["truncated"] is True,
          "in JSON too", said)
    said = local.json("run", "list", "--limit", 0)
    check(sorted(run["training_run_id"] for run in said["runs"]) == sorted(ids) and
          said["truncated"] is False, "0 lists all", said)
    said = local.json("run", "list", "--offset", 2)
    check(len(said["runs"]) == 1, "--offset passes over some", said)
    got = local("run", "list", "-c", "status, id ,checkpoint,checkpoint_time")
    check(got.stdout.splitlines()[0].split("  ")[0] == "Status" and
          "weights/first" in got.stdout and "None" in got.stdout and "N/A" in got.stdout,
          "columns are chosen", got)
    for columns in ("nonsense", "id,,x", ",", ""):
        got = local("run", "list", "--columns", columns)
        check(got.returncode == 2 and not got.stdout, f"no column {columns!r}", got)
    got = local("run", "info", ids[0])
    check(re.search(rf"^Run ID +{re.escape(ids[0])}$", got.stdout, re.M) and
          re.search(r"^Last Training Checkpoint +weights/first$", got.stdout, re.M),
          "run info", got)
    said = local.json("run", "info", ids[0])
    check(said["training_run_id"] == ids[0] and said["lora_rank"] == 2 and
          said["last_checkpoint"]["checkpoint_id"] == "weights/first" and
          said["last_sampler_checkpoint"] is None and said["corrupted"] is False,
          "and in JSON", said)


def failures(local):
    got = local("run", "info", "nothing:train:0")
    check(got.returncode == 4 and not got.stdout and "nothing:train:0" in got.stderr,
          "what there is not", got)
    got = local("run", "info", "nothing:train:0", "--json")
    error = json.loads(got.stdout)["error"]
    check(error["code"] == "TNK_ENOTFOUND" and error["http_status"] == 404 and
          error["exit_status"] == got.returncode == 4, "in JSON", got)
    for args in (["a b"], ["a?b"], ["../x"]):
        got = local("run", "info", *args)
        check(got.returncode == 2 and not got.stdout, f"no id: {args[0]}", got)
    got = local("--json", "run", "info")
    check(got.returncode == 2 and json.loads(got.stdout)["error"]["code"] == "usage",
          "a wrong line in JSON", got)
    got = tnk("run", "list", env={"HOME": "/nowhere"})
    check(got.returncode == 3 and "TINKER_API_KEY" in got.stderr, "no key", got)
    got = local("run", "list", "--base-url", "http://127.0.0.1:1", "--retries", 0)
    check(got.returncode == 5 and "--base-url" in got.stderr, "nobody there", got)
    got = local("run", "list", "--base-url", "http://127.0.0.1:1", "--timeout", 1)
    check(got.returncode == 5 and "--timeout" in got.stderr, "not in time", got)


with Local() as server:
    runs(server)
    failures(server)
plan()
