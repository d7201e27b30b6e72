# SPDX-License-Identifier: MIT
"""The client's own command line."""

import csv
import io
import json
import sys
import tempfile
from pathlib import Path

from kit import MODEL, case, check, done, need
from shell import has_command, has_option, hours, need_call, run_of, tinker, tinker_alone

sys.path.append(str(Path(__file__).resolve().parents[2] / "support"))
from model_hub import ModelHub  # noqa: E402


def in_json(*args, **env):
    return json.loads(tinker("-f", "json", *args, **env).stdout)


def saved(ctx):
    def make():
        training = ctx.new_training()
        return [done(training.save_state(f"cli-{i}")).path for i in range(3)]

    return ctx.once("saved for the command line", make)


def listed(ctx, path):
    checkpoints = done(ctx.rest.list_checkpoints(run_of(path))).checkpoints
    return next((c for c in checkpoints if c.tinker_path == path), None)


@case
def version(ctx):
    # The first as its user starts it.
    check(ctx.version in tinker_alone("version").stdout)
    check(ctx.version in tinker("version").stdout)


@case
def runs(ctx):
    run = run_of(saved(ctx)[0])
    check(any(r["training_run_id"] == run for r in in_json("run", "list", "--limit", "0")["runs"]))
    check("Training Run" in tinker("run", "info", run).stdout)


@case
def an_unknown_run(ctx):
    ran = tinker("run", "info", "nobody:train:0", code=1)
    check("not found" in ran.stderr.lower(), ran.stderr)


@case
def checkpoints(ctx):
    path = saved(ctx)[0]
    run = run_of(path)
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


@case
def some_of_the_runs(ctx):
    saved(ctx)
    columns = ("id", "model", "owner", "lora", "updated", "status", "checkpoint", "checkpoint_time")
    if has_option("run", "list", "--columns"):
        check("Checkpoint Time" in tinker("run", "list", "--limit", "1", "--columns", ",".join(columns)).stdout)
    check(len(in_json("run", "list", "--limit", "1")["runs"]) == 1)
    check(len(in_json("checkpoint", "list", "--limit", "2")["checkpoints"]) == 2)
    check("weights/" in tinker("checkpoint", "info", saved(ctx)[0]).stdout)


@case
def deletion_of_a_kind(ctx):
    need(has_option("checkpoint", "delete", "--run-id"), "not in this version")
    training = ctx.new_training()
    path = done(training.save_state("of-a-kind")).path
    left = done(training.save_weights_for_sampler("left")).path
    answer = in_json("checkpoint", "delete", "--run-id", run_of(path), "--type", "weights", "--after", "2020-01-01",
                     "--before", "2100-01-01", "-y")
    check(answer["deleted_count"] == 1 and listed(ctx, path) is None and listed(ctx, left), str(answer))


@case
def one_model(ctx):
    need(has_command("model"), "not in this version")
    check(MODEL in tinker("model", "list", "BYTE").stdout)


def downloaded(path):
    """Its files' names."""
    with tempfile.TemporaryDirectory() as folder:
        answer = in_json("checkpoint", "download", path, "-o", folder)
        files = [p for p in Path(folder).rglob("*") if p.is_file()]
        check(answer["checkpoint_path"] == path, str(answer))
        # A mark that an archive is complete has nothing in it.
        check(all(p.stat().st_size > 0 for p in files if p.name != "checkpoint_complete"), str(files))
        again = tinker("checkpoint", "download", path, "-o", folder, code=1)
        check("exist" in again.stdout + again.stderr, again.stderr)
        tinker("checkpoint", "download", path, "-o", folder, "--force")
        return {p.name for p in files}


@case
def weights_are_taken_home(ctx):
    """Also as archives, which older versions know alone."""
    names = {"adapter_config.json", "adapter_model.safetensors"}
    if not hasattr(ctx.rest.raw, "get_checkpoint_archive_url"):
        path = done(ctx.new_training().save_weights_external("home")).path
        check(downloaded(path) == names, path)
    else:
        need_call(f"training_runs/{run_of(saved(ctx)[0])}/checkpoints/weights/cli-0/archive")
    # By way of an export, or of an archive.
    check(downloaded(saved(ctx)[0]) >= names)


@case
def weights_are_pushed(ctx):
    """To a stand-in for a model hub."""
    need(has_command("checkpoint", "push-hf"), "not in this version")
    need(ctx.at_least(0, 25), "its arguments do not go with today's click")
    path = saved(ctx)[0]
    with ModelHub(token="hf_0123456789") as hub, tempfile.TemporaryDirectory() as home:
        answer = in_json("checkpoint", "push-hf", path, "--repo", "mine/adapter", **hub.env(home))
        check(answer["repo_id"] == "mine/adapter" and answer["checkpoint_path"] == path, str(answer))
        check(hub.files.keys() == {"README.md", "adapter_config.json", "adapter_model.safetensors"}, str(hub.files))


@case
def usage(ctx):
    # Its answers have had more members since.
    need(has_command("billing", "checkpoint-storage"), "this version refuses what it does not know")
    need_call("billing/usage/events?starting_on=2026-01-01T00:00:00Z&ending_before=2026-01-01T01:00:00Z")
    saved(ctx)
    answer = in_json("billing", "usage", *hours())
    check(answer["data"] and answer["sessions"], str(answer))
    rows = list(csv.DictReader(io.StringIO(tinker("billing", "usage", *hours(), "--csv", "-").stdout)))
    check(len(rows) >= len(answer["data"]), str(rows))
    tinker("billing", "usage", *hours(), "--sessions-csv", "-")


@case
def storage(ctx):
    need(has_command("billing", "checkpoint-storage"), "not in this version")
    saved(ctx)
    check(in_json("billing", "checkpoint-storage")["data"])
    check("," in tinker("billing", "checkpoint-storage", "--csv", "-").stdout)


@case
def a_trace(ctx):
    need(has_command("session", "export-trace"), "not in this version")
    saved(ctx)
    session = ctx.service.holder.get_session_id()
    need_call(f"sessions/{session}/trace_export")
    check(tinker("session", "export-trace", session, "--url-only").stdout.startswith("http"))
    with tempfile.TemporaryDirectory() as folder:
        tinker("session", "export-trace", session, "-o", f"{folder}/t")
        check(Path(folder, "t").stat().st_size > 0)
