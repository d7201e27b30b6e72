#!/usr/bin/env python3
"""Run the program of each guide against one local server.

usage: run_guides.py BUILD_DIR TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tap import check, plan

BUILD = pathlib.Path(sys.argv[1]).resolve()
TNK = sys.argv[2]
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
    programs = {path.stem for path in SOURCES.glob("*.c")}
    check(programs == {name for name, _ in RUNS}, "every program was run", programs)
    plan()


main()
