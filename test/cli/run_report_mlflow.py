#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk report --mlflow: the metrics of a run on a server of MLflow, which is played here.

usage: run_report_mlflow.py TNK_COMMAND

With MLFLOW=URL in the environment, a real server and its package mlflow are used too. Output is
TAP, see test/support/tap.py.
"""
import base64
import json
import math
import os
import pathlib
import subprocess
import tempfile

from console import CLEAN, TNK, check, plan, skip
from trackers import MISSING, Server

SECRET = "tml-abcdefgh"


def report(*args, **env):
    return subprocess.run([TNK, "report", *map(str, args)], env={**CLEAN, **env}, capture_output=True, text=True, timeout=120)


def write(folder, lines, config=None, ledger=None):
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    if ledger is not None:
        (folder / "checkpoints.jsonl").write_text("".join(json.dumps(line) + "\n" for line in ledger))
    return folder


def saved(step, **more):
    return {"name": f"s{step}", "batch": step, "state_path": f"tinker://r:train:0/weights/s{step}", "tnk": "saved",
            "tnk_attempt": 1, "tnk_save": step, "tnk_steps": step, "tnk_time": 1795850000 + step, **more}


def writes(top, server):
    """All values, within the server's limits."""
    lines = [{"step": i, "loss": 1 / i, "kl:é": i, "grad_norm": None if i == 7 else 2, "note": "text"} for i in range(1, 701)]
    config = {"began_s": 1795850000, "api_key": SECRET, "long": "é" * 4000, "a b": 1, **{f"x{i}": i for i in range(250)}}
    run = write(top / "first", lines, config, [saved(350), saved(700, final=True)])
    got = report(run, "--mlflow", server.url, "--json")
    check(got.returncode == 0 and json.loads(got.stdout) == {"mlflow": server.url}, "a run is written", got)
    one = server.living()[0]
    check(server.experiments == {"tnk": "1"} and one["name"] == "first" and one["status"] == "FINISHED" and
          one["start"] == 1795850000000, "an experiment and a run", (server.experiments, one["status"], one["start"]))
    of = {key: [m for m in one["metrics"] if m["key"] == key] for key in ("loss", "kl___", "grad_norm")}
    check([len(of[key]) for key in of] == [700] * 3 and len(one["metrics"]) == 2100, "all metrics and no more",
          {m["key"] for m in one["metrics"]})
    check(all(m["step"] == i and math.isclose(m["value"], 1 / i) for i, m in enumerate(of["loss"], 1)), "their values")
    check(of["grad_norm"][6]["value"] == "NaN", "a value that is not finite", of["grad_norm"][6])
    times = [m["timestamp"] for m in of["loss"]]
    check(times == sorted(times) and times[349] == 1795850350000, "times between the checkpoints", times[345:352])
    params = one["params"]
    check(len(params) == 254 and params["x249"] == "249" and params["api_key"] == "(hidden)", "the configuration", len(params))
    check(params["long"] == "é" * 3000, "a long value is cut between characters", params["long"][-3:])
    return run


def replaces(top, server, run):
    """An earlier run is deleted when the new one is complete."""
    old = server.living()[0]["id"]
    for what in ("runs/search", "runs/create", "runs/log-batch", "runs/update"):
        server.fails = (what, 500, {"error_code": "INTERNAL_ERROR", "message": "it is ill"})
        got = report(run, "--mlflow", server.url)
        check(got.returncode == 1 and "it is ill" in got.stderr and not server.runs[old]["deleted"],
              f"{what} fails, and the earlier run stays", got)
    server.fails = None
    got = report(run, "--mlflow", server.url)
    check(got.returncode == 0 and [(r["name"], len(r["metrics"])) for r in server.living()] == [("first", 2100)],
          "the next run replaces all", [(r["name"], len(r["metrics"])) for r in server.living()])
    second = write(top / "it's second", [{"step": 1, "loss": 2}], None, [saved(1)])
    got = report(run, second, "--mlflow", server.url)
    check(got.returncode == 0 and sorted((r["name"], r["status"]) for r in server.living()) ==
          [("first", "FINISHED"), ("it's second", "RUNNING")], "two runs, of which one has not ended", server.living()[-1])
    got = report(second, "--mlflow", server.url, "--experiment", "o'dd é&%20")
    again = report(second, "--mlflow", server.url, "--experiment", "o'dd é&%20")
    check(got.returncode == again.returncode == 0 and set(server.experiments) == {"tnk", "o'dd é&%20"} and
          [r["experiment"] for r in server.living()].count("2") == 1, "an experiment with another name", again)


def keys(server, run):
    server.keys.clear()
    for env, wanted in (({}, None), ({"MLFLOW_TRACKING_TOKEN": "t0ken"}, "Bearer t0ken"),
                        ({"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "pässword"},
                         "Basic " + base64.b64encode("me:pässword".encode()).decode())):
        server.keys.clear()
        got = report(run, "--mlflow", server.url, **env)
        check(got.returncode == 0 and server.keys == {wanted}, f"the key is {wanted is not None}", server.keys)
    server.fails = ("", 401, {"error_code": "UNAUTHENTICATED", "message": "who are you?"})
    got = report(run, "--mlflow", server.url, MLFLOW_TRACKING_TOKEN="t0ken")
    check(got.returncode == 3 and "who are you?" in got.stderr and "MLFLOW_TRACKING_TOKEN" in got.stderr and
          "t0ken" not in got.stderr + got.stdout, "a key that is refused", got)
    server.fails = None
    got = report(run, "--mlflow", server.url, MLFLOW_TRACKING_TOKEN="t0\nken")
    check(got.returncode == 2 and "the key of MLflow has characters" in got.stderr and "ken" not in got.stdout,
          "a key that no request can have", got)


def refused(server, run):
    for fails, status, words in (
            (("", 200, b"<html>"), 1, "not one of MLflow"), (("", 502, b"<html>"), 1, "status 502"), (("", 200, b"[]"), 1, "not one of MLflow"),
            (("experiments/create", 200, {}), 1, "not one of MLflow"), (("runs/create", 200, {"run": {}}), 1, "not one of MLflow"),
            (("experiments/", 404, MISSING), 1, "No such experiment")):
        server.fails = fails
        got = report(run, "--mlflow", server.url, "--experiment", f"new {fails[1]}")
        check(got.returncode == status and words in got.stderr, f"an answer {fails[1:]} of {fails[0]}", got)
    server.fails = None
    for args, status, words in (
            (("--mlflow", "http://127.0.0.1:1"), 5, "connection refused"), (("--mlflow", "nonsense"), 2, "Check --mlflow"),
            (("--mlflow", "http://me:hunter2@127.0.0.1:1"), 2, "password"), (("--experiment", "x"), 2, "needs --mlflow"),
            (("--mlflow", server.url, "-o", "x"), 2, "--output"), (("--mlflow", server.url, "--trackio", "x"), 2, "use one"),
            (("--mlflow", server.url, "--experiment", "x" * 2000), 2, "too long")):
        server.experiments["x" * 2000] = "9"
        got = report(run, *args)
        check(got.returncode == status and words in got.stderr and "hunter2" not in got.stderr, f"refused: {words}", got)


def real(run):
    url = os.environ.get("MLFLOW")
    if not url:
        skip("MLflow takes a run", "MLFLOW names no server")
        return
    from mlflow import MlflowClient
    for _ in range(2):
        got = report(run, "--mlflow", url, "--experiment", "tnk's é %20")
        check(got.returncode == 0, "MLflow takes a run", got)
    client = MlflowClient(url)
    runs = client.search_runs([client.get_experiment_by_name("tnk's é %20").experiment_id])
    check(len(runs) == 1 and runs[0].info.status == "FINISHED", "there is one", runs)
    history = client.get_metric_history(runs[0].info.run_id, "loss")
    check([(m.step, m.value) for m in history] == [(i, 1 / i) for i in range(1, 701)], "with all values", history[:3])


with tempfile.TemporaryDirectory() as tmp:
    where = pathlib.Path(tmp)
    with Server() as mlflow:
        first = writes(where, mlflow)
        replaces(where, mlflow, first)
        keys(mlflow, first)
        refused(mlflow, first)
        real(first)
        mlflow.shutdown()
plan()
