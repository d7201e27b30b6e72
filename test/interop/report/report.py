#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `tnk report` and `tnk train --log-to` write for TensorBoard, trackio and MLflow is read by them.

    python3 report.py --tnk BUILD/src/tools/tnk/tnk --venv FOLDER

The packages are put into the environment, which is made if it is missing. Without PyPI all is
skipped. The tests of the command are run with these packages and with a server of MLflow.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

TEST = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TEST / "support"))
from own_venv import enter_or_skip  # noqa: E402
from ports import reserve  # noqa: E402
from tap import check, plan  # noqa: E402

START_S = TEST_S = 300
LIVE_STEPS = 60


def answers(url):
    try:
        with urllib.request.urlopen(url + "/health", timeout=5) as got:
            return got.status == 200
    except OSError:
        return False


def start_mlflow(folder):
    """The process and the address, once it answers."""
    url = f"http://127.0.0.1:{reserve()}"
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(
            [pathlib.Path(sys.prefix) / "bin/mlflow", "server", "--host", "127.0.0.1", "--port", url.rsplit(":", 1)[1],
             "--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"],
            stdout=log, stderr=log, cwd=folder, start_new_session=True)
    until = time.monotonic() + START_S
    while not answers(url) and server.poll() is None and time.monotonic() < until:
        time.sleep(0.5)
    check(answers(url), "MLflow answers", (folder / "log").read_text(errors="replace")[-2000:])
    return server, url


def train_twice(tnk, top, url):
    """A run that logs to all three, is killed after some steps, and resumed. Returns its folder."""
    chats, run = top / "chats.jsonl", top / "run"
    with open(chats, "w", encoding="utf-8") as out:
        for i in range(24):
            out.write(json.dumps({"prompt": f"question {i}", "completion": f"answer {i}"}) + "\n")
    args = [tnk, "train", chats, "--local", "--run", run, "--steps", str(LIVE_STEPS), "--batch", "4", "--save-every", "10",
            "--log-to", f"tensorboard:{top}/board", "--log-to", f"trackio:{top}/live.db", "--log-to", f"mlflow:{url}"]
    with subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("step ") and int(line.split()[1].split("/")[0]) > LIVE_STEPS // 4:
                process.kill()
                break
        # To the end of the processes that write the last steps.
        process.stderr.read()
    check(process.returncode == -signal.SIGKILL, "the run is killed", process.returncode)
    got = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TEST_S)
    check(got.returncode == 0 and "not all steps" not in got.stderr, "and resumed", got)
    return run


def live(tnk, top, url):
    """Each step of a run that was resumed is there once, with its value."""
    from mlflow import MlflowClient
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    run = train_twice(tnk, top, url)
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    wanted = [(line["step"], line["train/loss"]) for line in lines]
    check([step for step, _ in wanted] == [*range(1, LIVE_STEPS + 1)], "all steps", wanted)
    board = EventAccumulator(str(top / "board"))
    board.Reload()
    got = [(one.step, one.value) for one in board.Scalars("train/loss")]
    check([step for step, _ in got] == [step for step, _ in wanted] and
          all(abs(a - b) < 1e-5 for (_, a), (_, b) in zip(got, wanted)), "TensorBoard has each step once", got)
    os.environ["TRACKIO_DIR"] = str(top)
    from trackio.sqlite_storage import SQLiteStorage
    got = [(row["step"], row["train/loss"]) for row in SQLiteStorage.get_logs("live", "run")]
    check(got == wanted, "trackio has each step once", got)
    client = MlflowClient(url)
    runs = client.search_runs([client.get_experiment_by_name("tnk").experiment_id])
    check([one.info.status for one in runs] == ["FINISHED"], "MLflow has one run, which has finished", runs)
    got = [(one.step, one.value) for one in client.get_metric_history(runs[0].info.run_id, "train/loss")]
    check(sorted(got) == wanted, "MLflow has each step once", got)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tnk", type=pathlib.Path, required=True)
    parser.add_argument("--venv", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tnk = args.tnk.resolve()
    enter_or_skip(args.venv, "tensorboard", "trackio", "mlflow")
    with tempfile.TemporaryDirectory() as top:
        server, url = start_mlflow(pathlib.Path(top))
        try:
            live(tnk, pathlib.Path(top), url)
            for name, words in (("run_report.py", ("TensorBoard reads the files", "trackio reads the metrics")),
                                ("run_report_mlflow.py", ("MLflow takes a run", "with all values"))):
                got = subprocess.run([sys.executable, TEST / "cli" / name, tnk], capture_output=True, text=True,
                                     env={**os.environ, "MLFLOW": url}, check=False, timeout=TEST_S)
                said = [line.split(" - ", 1)[1] for line in got.stdout.splitlines() if line.startswith("ok ")]
                check(got.returncode == 0 and all(word in said for word in words), f"{name} with the packages",
                      got.stdout[-2000:] + got.stderr[-2000:])
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
    plan()


main()
