#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the program of each guide against one local server.

usage: run_guides.py BUILD_DIR TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipe import Paced
from ports import reserve
from tap import check, plan

BUILD = pathlib.Path(sys.argv[1]).resolve()
TNK = pathlib.Path(sys.argv[2]).resolve()
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "examples/guides"

# Program, and what its output must contain, in this order.
RUNS = [
    ("tutorial", ["begins after step 0\n", "step 60: loss "]),
    ("tutorial", ["begins after step 60\n"]),
    ("callbacks", ["loss "] * 20),
    ("connecting", ["tnk/byte-lm\n"]),
    ("data", ['datum 0: "target_tokens" has 3 values, expected 4\n', "loss per token: "]),
    ("sampling", [": \\d+ tokens, log p -"] * 6),
    ("chat", ["Assistant:\\[ \\]\\[4\\]\\[2\\]"]),
    ("weights", ["saved tinker://\\S+/external_weights/first\n", "adapter: [1-9]\\d* files\n"]),
    ("costs", ["the budget of the program does not allow it", "[1-9]\\d tokens sampled, 0.0000\\d+ USD"]),
    ("observability", ["# TYPE tnk_operations_total counter\n"]),
    ("debugging", ["sample: ", "canceled", "\nrequests:"]),
    ("errors", ["TNK_EINVAL ", "TNK_EINTERNAL "]),
]
# Built only by a compiler of C++20.
if (BUILD / "examples/guide_cpp").exists():
    RUNS.append(("cpp", ["step 1: loss ", "step 20: loss ", "he -> \\d+ "]))


def serve(port, folder, env):
    """A server that keeps its checkpoints."""
    server = subprocess.Popen([TNK, "local", "--port", str(port), "--data", "served", "--exit-with-stdin"],
                              cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
    return server, re.search(r"listening on (\S+)", server.stdout.readline())[1]


def lines_until(program, pattern):
    """The program's output up to a line that matches the pattern."""
    got = ""
    for line in program.lines:
        got += line
        if re.match(pattern, line):
            return got, int(re.search(r"\d+", line)[0])
    return got, None


def long_run(env, folder):
    """The server is killed, then the program, then the server again. The run
    continues each time with the step after the last save. The program waits for
    who reads its lines, so it is at most two steps on when a kill comes."""
    port = reserve()
    server, url = serve(port, folder, env)
    env = {**env, "TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"}
    start = lambda: Paced([BUILD / "examples/guide_long_runs"], env=env, cwd=folder, stdin=subprocess.DEVNULL)
    program = start()
    for began, kill_at, dies in ((0, 25, "server"), (20, 45, "program"), (40, 65, "server")):
        told, at = lines_until(program, r"(?:begins|restored) after step \d+$")
        check(at is not None and began <= at < kill_at and at % 10 == 0, f"it continues after a save: {began}",
              (at, told))
        told, step = lines_until(program, r"step ")
        check(step == (at or 0) + 1, "the next step follows the save", told)
        lines_until(program, f"step {kill_at}$")
        if dies == "server":
            server.kill()
            server.wait()
            server, _ = serve(port, folder, env)
        else:
            program.kill()
            program.wait()
            program = start()
    told, at = lines_until(program, r"restored after step \d+$")
    check(at is not None and 60 <= at < 100, "it continues after the second loss of the server", told)
    told, step = lines_until(program, r"step 150$")
    check(program.wait(60) == 0 and step == 150, "the run ends at its last step", told)
    server.stdin.close()
    server.wait(20)
    rows = [json.loads(line) for line in pathlib.Path(folder, "long-run/checkpoints.jsonl").read_text().splitlines()]
    check(any(row.get("batch") == 150 for row in rows), "the last save is in the ledger", rows[-3:])


def main():
    env = {k: v for k, v in os.environ.items() if not k.startswith("TINKER_")}
    env["no_proxy"] = "*"
    server = subprocess.Popen([TNK, "local", "--port", "0", "--exit-with-stdin"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=env, text=True)
    env["TINKER_BASE_URL"] = re.search(r"listening on (\S+)", server.stdout.readline())[1]
    env["TINKER_API_KEY"] = "tml-local"
    with tempfile.TemporaryDirectory() as folder:
        for name, expected in RUNS:
            got = subprocess.run([BUILD / "examples" / f"guide_{name}"], env=env,
                                 cwd=folder, stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=300)
            check(got.returncode == 0, f"the program of {name} succeeds", got)
            check(re.search(".*?".join(expected), got.stdout, re.S),
                  f"the program of {name} prints what its guide says", got)
    server.stdin.close()
    server.wait(20)
    with tempfile.TemporaryDirectory() as folder:
        long_run(env, folder)
    programs = {path.stem for path in SOURCES.glob("*.c")}
    check(programs == {name for name, _ in RUNS} - {"cpp"} | {"long_runs"}, "every program was run", programs)
    plan()


main()
