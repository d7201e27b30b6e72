#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package tnk for Python without memory, and with threads held at a bad moment.

usage: run_python_faults.py PACKAGE_DIR EXTENSION TNK_COMMAND PRELOAD

PRELOAD is the library of preload.c. Output is TAP, see test/support/tap.py.
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from tap import check, plan

sys.path.insert(0, str(HERE))
from python_package import KEY, TORCH, install, serve

PACKAGE, EXTENSION, TNK, PRELOAD = (pathlib.Path(a).resolve() for a in sys.argv[1:])
FOLDER = install(PACKAGE, EXTENSION)
(FOLDER / "torch.py").write_text(TORCH)
# Processes that share the allocations. Most of the time they wait for the library,
# which repeats requests.
N_PROCESSES = 4
# Where the process allocates before it has a service; the life itself has more.
N_EARLY = 16


def start(name, *command):
    """A process with the preloaded library, and a control file of its own."""
    control, gate = FOLDER / f"control-{name}", FOLDER / f"gate-{name}"
    control.write_bytes(bytes(24))
    os.mkfifo(gate)
    env = {**os.environ, "LD_PRELOAD": str(PRELOAD), "TNK_TEST_CONTROL": str(control), "TNK_TEST_GATE": str(gate),
           "TNK_TEST_OBJECT": "_native.abi3.so"}
    return subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=env)


def end(process, timeout=240):
    """What it wrote; a process that does not end is killed."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += "\nit did not end"
    return process.returncode, out, err


def allocations(url):
    life = str(HERE / "python_life.py")
    running = [start(f"late-{i}", life, url, str(i + 1), str(N_PROCESSES)) for i in range(N_PROCESSES)]
    for i in range(N_EARLY):
        code, out, err = end(start(f"early-{i}", life, url, str(i + 1), "0"))
        check(code == 0 and f"ended at {i + 1}" in out and "Error" in out, f"without allocation {i + 1} of the process",
              (code, out, err))
    for i, process in enumerate(running):
        code, out, err = end(process)
        reached = int(out.split()[-1]) if code == 0 else 0
        check(reached > 100, f"without each allocation of a life, {i + 1} of {N_PROCESSES}", (code, out, err))


def own_allocations(url):
    life = str(HERE / "python_own_life.py")
    # The name of each call, and the least number of its allocations.
    calls = {"numbers": 5, "texts": 20, "conversations": 50, "parsers": 20, "gateways": 100, "services": 20}
    running = {name: start(f"own-{name}", life, url, name) for name in calls}
    for name, process in running.items():
        code, out, err = end(process)
        reached = int(out.split()[-1]) if code == 0 else 0
        check(reached > calls[name], f"without each allocation of {name}", (code, reached, out[-2000:], err))


# The thread of the runtime stops where it has released the lock for the n-th time. If
# the program has not ended by then, it ends now, and the thread continues after the
# thread of the losses has gone.
PAUSED = """
import mmap, os, struct, sys
import tnk
import tnk._loss
control = mmap.mmap(os.open(os.environ["TNK_TEST_CONTROL"], os.O_RDWR), 24)
t = tnk.ServiceClient(base_url=sys.argv[1], api_key=sys.argv[2]).create_lora_training_client("tnk/byte-lm", 8).result()
d = tnk.Datum(tnk.ModelInput.from_ints(list(b"hell")), {"target_tokens": list(b"ello")})
control[8:16] = struct.pack("q", int(sys.argv[3]))
passed = t.forward_backward_custom([d], lambda data, logprobs: (logprobs[0].sum() * -1.0, {}))
while not passed.done() and not any(control[16:24]):
    try:
        passed.exception(0.01)
    except TimeoutError:
        pass
print("paused" if any(control[16:24]) else "done")
tnk._future._at_exit.append(lambda: os.open(os.environ["TNK_TEST_GATE"], os.O_RDWR))
"""


def losses_at_the_end(url):
    for n in range(1, 100):
        code, out, err = end(start(f"pause-{n}", "-c", PAUSED, url, KEY, str(n)), 60)
        if out == "done\n":
            break
        check(code == 0 and out == "paused\n" and not err, f"a program ends while its loss is at lock {n}",
              (code, out, err))
    check(3 < n < 100, "the locks of a loss are few", n)


def main():
    server, url = serve(TNK)
    allocations(url)
    own_allocations(url)
    losses_at_the_end(url)
    server.stdin.close()
    server.wait(20)
    plan()


main()
