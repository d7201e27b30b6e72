#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One run, gone on with by tnk's ledger and by the Tinker cookbook in turn.

    python3 ledger.py --build BUILD_DIR [--cache FOLDER]

The cookbook's module for checkpoints comes from PyPI, alone: what else it installs,
torch among it, is not needed for it. With it and the official client, cookbook.py
trains a few steps; examples/sft does the same with tnk. Skips, with the reason, where
PyPI is out of reach.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
sys.path.insert(0, str(HERE.parent))
from run import Clients, VERSIONS, skip_all  # noqa: E402
from tap import check, plan  # noqa: E402

COOKBOOK = "0.6.1"
KEY = "tml-local"
FILES = ("adapter_model.safetensors", "optimizer.safetensors")


class Run:
    """A directory that both work in, and a server that keeps what they save."""

    def __init__(self, folder, build, clients, cookbook):
        self.folder = folder
        self.build = build
        self.clients = clients
        self.cookbook_path = cookbook
        self.log = folder / "log"
        self.log.mkdir()
        self.chats = folder / "chats"
        self.chats.write_text("".join(json.dumps({"messages": [
            {"role": "user", "content": f"say {i % 5}"},
            {"role": "assistant", "content": "ab" * (i % 5 + 1)}]}) + "\n"
            for i in range(60)))
        self.server = subprocess.Popen(
            [build / "src/tools/tnk/tnk", "local", "--port", "0", "--exit-with-stdin",
             "--data", folder / "data"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        url = re.search(r"listening on (\S+)", self.server.stdout.readline())[1]
        self.env = {**os.environ, "TINKER_BASE_URL": url, "TINKER_API_KEY": KEY,
                    "no_proxy": "*", "HOME": str(folder),
                    "PYTHONPATH": str(cookbook)}

    def close(self):
        self.server.stdin.close()
        self.server.wait(60)

    def do(self, command, what):
        ran = subprocess.run(command, env=self.env, capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, timeout=300, check=False)
        check(ran.returncode == 0, what, ran)
        return ran.stdout

    def tnk(self, steps):
        return self.do([self.build / "examples/sft", self.chats, self.log,
                        str(steps), "3"], f"tnk trains to step {steps}")

    def cookbook(self, steps):
        said = self.do([self.clients.python, HERE / "cookbook.py", self.log,
                        str(steps)], f"the cookbook trains to step {steps}")
        return json.loads(said.splitlines()[-1])

    def bytes_of(self, path):
        run, kind, name = path.removeprefix("tinker://").split("/")
        place = self.folder / "data" / run.replace(":", "_") / kind / name
        return [(place / file).read_bytes() for file in FILES]

    def last(self):
        lines = (self.log / "checkpoints.jsonl").read_text().splitlines()
        return [entry for entry in map(json.loads, lines)
                if entry.get("state_path")][-1]

    def check_cookbook_goes_on(self, begin, end):
        before = self.last()
        said = self.cookbook(end)
        check(said["batch"] == begin and said["state_path"] == before["state_path"],
              "the cookbook goes on from tnk's last state", said)
        check(self.bytes_of(said["same"]) == self.bytes_of(before["state_path"]),
              "with its weights and its optimizer")
        check(said["extra"]["tnk"] == "saved" and said["extra"]["tnk_steps"] == begin,
              "what is ours in the line is kept", said)

    def check_tnk_goes_on(self, begin, end):
        said = self.tnk(end)
        check(f"resuming at step {begin}\n" in said,
              "tnk goes on from the cookbook's last state", said)
        check(f"step {begin + 1} loss" in said and f"step {begin} loss" not in said,
              "with the next step", said)
        after = self.last()
        check(after["batch"] == end and after["final"] is True,
              "its last entry says so", after)


def begun_by_tnk(run):
    run.tnk(6)
    run.check_cookbook_goes_on(6, 9)
    run.check_tnk_goes_on(9, 12)


def begun_by_the_cookbook(run):
    run.cookbook(3)
    run.check_tnk_goes_on(3, 6)
    run.check_cookbook_goes_on(6, 8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cache", type=pathlib.Path)
    args = parser.parse_args()
    cache = args.cache or pathlib.Path(
        os.environ.get("TNK_INTEROP_CACHE") or
        pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                     pathlib.Path.home() / ".cache") / "tnk-interop")
    clients = Clients(cache)
    clients.prepare(VERSIONS[:1])
    cookbook = cache / f"cookbook-{COOKBOOK}"
    if not cookbook.exists():
        clients.pip("--no-deps", "--target", str(cookbook),
                    f"tinker-cookbook=={COOKBOOK}")
    tried = subprocess.run(
        [clients.python, "-c", "import tinker_cookbook.checkpoint_utils"],
        env={**os.environ, "PYTHONPATH": str(cookbook)}, capture_output=True,
        text=True, check=False)
    if tried.returncode != 0:
        skip_all("the cookbook's module cannot be imported alone: " +
                 tried.stderr.strip().splitlines()[-1])
    for begin in (begun_by_tnk, begun_by_the_cookbook):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(pathlib.Path(folder), args.build.resolve(), clients, cookbook)
            begin(run)
            run.close()
    plan()


if __name__ == "__main__":
    main()
