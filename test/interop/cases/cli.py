"""The client's own command line."""

import json
import os
import subprocess
import sys

from kit import CALLS, MODEL, case, check, done, need


def tinker(*args, code=0):
    CALLS["tinker " + " ".join(a for a in args[:2] if not a.startswith("tinker:"))] += 1
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tinker.cli", *args],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env=os.environ,
    )
    check(code is None or ran.returncode == code,
          f"{args}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran


def in_json(*args):
    return json.loads(tinker("-f", "json", *args).stdout)


def saved(ctx):
    def make():
        training = ctx.new_training()
        return [done(training.save_state(f"cli-{i}")).path for i in range(3)]

    return ctx.once("saved for the command line", make)


@case
def version(ctx):
    check(ctx.version in tinker("version").stdout)


@case
def runs(ctx):
    run = saved(ctx)[0].removeprefix("tinker://").split("/")[0]
    check(any(r["training_run_id"] == run for r in in_json("run", "list", "--limit", "0")["runs"]))
    check(in_json("run", "info", run)["base_model"] == MODEL)
    check("Training Run" in tinker("run", "info", run).stdout)


@case
def checkpoints(ctx):
    path = saved(ctx)[0]
    run = path.removeprefix("tinker://").split("/")[0]
    listed = in_json("checkpoint", "list", "--run-id", run)["checkpoints"]
    check(path in [c["tinker_path"] for c in listed])
    check(in_json("checkpoint", "info", path)["checkpoint_type"] == "training")


@case
def changing_checkpoints(ctx):
    _, path, gone = saved(ctx)
    tinker("checkpoint", "publish", path)
    check(in_json("checkpoint", "info", path)["public"] is True)
    tinker("checkpoint", "unpublish", path)
    check(in_json("checkpoint", "info", path)["public"] is False)
    if "set-ttl" in tinker("checkpoint", "--help").stdout:
        tinker("checkpoint", "set-ttl", path, "--ttl", "7200")
        tinker("checkpoint", "set-ttl", path, "--remove")
    tinker("checkpoint", "delete", gone, "-y")
    tinker("checkpoint", "info", gone, code=1)


@case
def models(ctx):
    need("model" in tinker("--help").stdout.split(), "not in this version")
    check(in_json("model", "list")["models"][0]["model_name"] == MODEL)


@case
def credentials(ctx):
    need("auth" in tinker("--help").stdout.split(), "not in this version")
    check("yes" in tinker("auth", "status").stdout)


@case
def an_unknown_run(ctx):
    ran = tinker("run", "info", "nobody:train:0", code=1)
    check("not found" in ran.stderr.lower(), ran.stderr)
