"""The client's own command line."""

import importlib
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


def has_command(group, name=None):
    """Asked of the modules: starting the command takes a second."""
    try:
        module = importlib.import_module(f"tinker.cli.commands.{group}")
    except ImportError:
        return False
    return name is None or name in module.cli.commands


def listed(ctx, path):
    run = path.removeprefix("tinker://").split("/")[0]
    checkpoints = done(ctx.rest.list_checkpoints(run)).checkpoints
    return next((c for c in checkpoints if c.tinker_path == path), None)


@case
def version(ctx):
    check(ctx.version in tinker("version").stdout)


@case
def runs(ctx):
    run = saved(ctx)[0].removeprefix("tinker://").split("/")[0]
    check(any(r["training_run_id"] == run for r in in_json("run", "list", "--limit", "0")["runs"]))
    check("Training Run" in tinker("run", "info", run).stdout)


@case
def an_unknown_run(ctx):
    ran = tinker("run", "info", "nobody:train:0", code=1)
    check("not found" in ran.stderr.lower(), ran.stderr)


@case
def checkpoints(ctx):
    path = saved(ctx)[0]
    run = path.removeprefix("tinker://").split("/")[0]
    answer = in_json("checkpoint", "list", "--run-id", run)["checkpoints"]
    check(path in [c["tinker_path"] for c in answer])
    check(in_json("checkpoint", "info", path)["checkpoint_type"] == "training")


@case
def publishing(ctx):
    path = saved(ctx)[1]
    tinker("checkpoint", "publish", path)
    check(listed(ctx, path).public)
    tinker("checkpoint", "unpublish", path)
    check(not listed(ctx, path).public)


@case
def expiry(ctx):
    need(has_command("checkpoint", "set-ttl"), "not in this version")
    path = saved(ctx)[1]
    tinker("checkpoint", "set-ttl", path, "--ttl", "7200")
    check(listed(ctx, path).expires_at is not None)
    tinker("checkpoint", "set-ttl", path, "--remove")
    check(listed(ctx, path).expires_at is None)


@case
def deletion(ctx):
    need(ctx.at_least(0, 25), "its arguments do not go with today's click")
    path = saved(ctx)[2]
    tinker("checkpoint", "delete", "-y", path)
    check(listed(ctx, path) is None)


@case
def models(ctx):
    need(has_command("model"), "not in this version")
    check(in_json("model", "list")["models"][0]["model_name"] == MODEL)


@case
def credentials(ctx):
    need(has_command("auth"), "not in this version")
    check("yes" in tinker("auth", "status").stdout)
