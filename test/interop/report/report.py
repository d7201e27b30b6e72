#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `tnk report` writes for TensorBoard, trackio and MLflow is read by them.

    python3 report.py --tnk BUILD/src/tools/tnk/tnk --venv FOLDER

The packages are put into the environment, which is made if it is missing. Without PyPI all is
skipped. The tests of the command are run with these packages and with a server of MLflow.
"""
import argparse
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
from own_venv import enter  # noqa: E402
from ports import reserve  # noqa: E402
from tap import check, plan  # noqa: E402

START_S = TEST_S = 300


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tnk", type=pathlib.Path, required=True)
    parser.add_argument("--venv", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tnk = args.tnk.resolve()
    enter(args.venv, "tensorboard", "trackio", "mlflow")
    with tempfile.TemporaryDirectory() as top:
        server, url = start_mlflow(pathlib.Path(top))
        try:
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
