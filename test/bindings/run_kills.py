#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program in another language is killed at random requests, or its server is. It resumes
from its ledger, and its final weights are those of a run without kills.

usage: run_kills.py python PACKAGE_DIR EXTENSION TNK_COMMAND
       run_kills.py node SOURCE_DIR ADDON TNK_COMMAND

TNK_TEST_KILLS: how often each of the two is killed (10). Output is TAP, see
test/support/tap.py.
"""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from ports import reserve
from tap import check, plan

sys.path.insert(0, str(HERE))
from python_package import KEY, install

LANGUAGE = sys.argv[1]
SOURCE, BINDING, TNK = (pathlib.Path(a).resolve() for a in sys.argv[2:])
KILLS = int(os.environ.get("TNK_TEST_KILLS", "10"))
KILLS_OF_A_RUN = 2
os.environ.update(no_proxy="*", TINKER_API_KEY=KEY)


class Pair:
    """A server with its folder, and a program. Each may be killed and started again."""

    def __init__(self, command, folder, who=None, kill_at=()):
        self.command, self.folder, self.who, self.kill_at = command, folder, who, list(kill_at)
        self.port = str(reserve())
        self.n_requests = self.n_killed = 0
        self.lines = []
        self.server = self.program = None
        self.starting = threading.Lock()  # a program that starts is not killed before it is known

    def serve(self):
        self.server = subprocess.Popen(
            [TNK, "local", "--port", self.port, "--verbose", "--data", self.folder / "served", "--exit-with-stdin"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.server.stdout.readline()
        threading.Thread(target=self.watch, args=(self.server,)).start()

    def watch(self, server):
        """Count requests, and kill at those that were drawn."""
        for _ in server.stderr:
            self.n_requests += 1
            if self.kill_at and self.n_requests >= self.kill_at[0]:
                self.kill_at.pop(0)
                with self.starting:
                    victim = self.program if self.who == "program" else server
                    self.n_killed += victim.poll() is None
                    victim.kill()
        server.stderr.close()
        if server.wait() != 0:
            self.serve()

    def run(self):
        """Until the program succeeds. It fails at most once for each kill."""
        self.folder.mkdir()
        self.serve()
        error = ""
        for _ in range(KILLS_OF_A_RUN + 1):
            with self.starting:
                self.program = subprocess.Popen(
                    [*self.command, self.folder / "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    env={**os.environ, "TINKER_BASE_URL": f"http://127.0.0.1:{self.port}"})
            out, error = self.program.communicate(timeout=240)
            self.lines += out.splitlines()
            if self.program.returncode == 0:
                break
        self.kill_at = []
        self.server.stdin.close()
        self.server.wait(60)
        self.server.stdout.close()
        return self.program.returncode, error

    def losses(self):
        """The last one of each step."""
        return {line.split()[1]: line.split()[2] for line in self.lines if line.startswith("loss ")}

    def weights(self):
        """The bytes of the final weights and of the optimizer's state."""
        path = next(line.split()[1] for line in self.lines if line.startswith("final "))
        model, kind, name = path.removeprefix("tinker://").split("/")
        files = sorted((self.folder / "served" / model.replace(":", "_") / kind / name).iterdir())
        return {file.name: file.read_bytes() for file in files if file.name != "meta.json"}


def command(folder):
    if LANGUAGE == "python":
        install(SOURCE, BINDING)
        return [sys.executable, HERE / "python/resumes.py"]
    shutil.copytree(SOURCE / "lib", folder / "node_modules/tnk")
    shutil.copy(HERE / "node/resumes.js", folder)
    os.environ["TNK_NODE_ADDON"] = str(BINDING)
    return ["node", folder / "resumes.js"]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = command(folder)
        whole = Pair(program, folder / "whole")
        code, error = whole.run()
        check(code == 0 and len(whole.losses()) == 8, "a run without kills ends", (code, error, whole.lines))
        weights = whole.weights()
        check(len(weights) > 1 and all(weights.values()), "it has weights", list(weights))
        for who in ("program", "server"):
            n_killed, resumed, seed = 0, set(), 0
            while n_killed < KILLS and seed < 10 * KILLS:  # a run may have ended when its moment is noticed
                seed += 1
                at = sorted(random.Random(f"{who}{seed}").sample(range(2, whole.n_requests), KILLS_OF_A_RUN))
                pair = Pair(program, folder / f"{who}-{seed}", who, at)
                code, error = pair.run()
                same = code == 0 and pair.losses() == whole.losses() and pair.weights() == weights
                check(same, f"{who} killed at the requests {at}: the same losses and weights",
                      (code, error, pair.lines, whole.losses()))
                n_killed += pair.n_killed
                resumed |= {line for line in pair.lines if re.fullmatch(r"begins [1-9]\d*", line)}
            check(n_killed >= KILLS, f"the {who} was killed often enough", n_killed)
            check(resumed, f"runs have resumed from saves after kills of the {who}", resumed)
    plan()


main()
