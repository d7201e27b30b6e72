#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package tnk for Node without memory: each allocation of the addon fails once.

usage: run_node_faults.py SOURCE_DIR ADDON TNK_COMMAND PRELOAD

PRELOAD is the library of preload.c. Output is TAP, see test/support/tap.py.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from tap import check, plan

sys.path.insert(0, str(HERE))
from python_package import serve

SOURCE, ADDON, TNK, PRELOAD = (pathlib.Path(a).resolve() for a in sys.argv[1:])
# Processes that share the allocations. Most of the time they wait for the library,
# which repeats requests.
N_PROCESSES = 4
# Where the process allocates before it has a service; the life itself has more.
N_EARLY = 8


def start(folder, url, first, step):
    control = folder / f"control-{first}-{step}"
    control.write_bytes(bytes(24))
    env = {**os.environ, "no_proxy": "*", "TINKER_BASE_URL": url, "LD_PRELOAD": str(PRELOAD),
           "TNK_NODE_ADDON": str(ADDON), "TNK_TEST_CONTROL": str(control), "TNK_TEST_OBJECT": "tnk.node"}
    return subprocess.Popen(["node", "life.js", str(first), str(step)], cwd=folder, env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def end(process):
    """What it wrote; a process that does not end is killed."""
    try:
        out = process.communicate(timeout=240)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        out = process.communicate()[0] + "\nit did not end"
    return process.returncode, out


def main():
    server, url = serve(TNK)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copytree(SOURCE / "lib", folder / "node_modules/tnk")
        shutil.copy(HERE / "node/life.js", folder)
        running = [start(folder, url, i + 1, N_PROCESSES) for i in range(N_PROCESSES)]
        for i in range(N_EARLY):
            code, out = end(start(folder, url, i + 1, 0))
            check(code == 0 and f"ended at {i + 1}" in out and "Error" in out,
                  f"without allocation {i + 1} of the process", (code, out))
        for i, process in enumerate(running):
            code, out = end(process)
            reached = int(out.split()[-1]) if code == 0 else 0
            check(reached > 100, f"without each allocation of a life, {i + 1} of {N_PROCESSES}", (code, out))
    server.stdin.close()
    server.wait(20)
    plan()


main()
