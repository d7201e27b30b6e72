# SPDX-License-Identifier: MIT
"""The group about tnk/rl.h: a million tokens in single precision, on one core,
beside numpy, for what numpy does in at most five calls."""
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def numbers(lab):
    """Both in one process, in turn; the quickest of many, in CPU time."""
    library = sorted(glob.glob(lab.build + "/src/libtnk.so*"))
    command = [lab.python or sys.executable, os.path.join(HERE, "beside_numpy.py"), *library[:1],
               str(1 << 10 if lab.quick else 1 << 20), str(3 if lab.quick else 40 * lab.rounds)]
    if not library:
        print("left out, for this build has no shared library")
        return
    got = subprocess.run(command, capture_output=True, text=True, check=True, env={
        **os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    if not got.stdout.startswith("{"):
        print(got.stdout.strip())
        return
    for name, times in json.loads(got.stdout).items():
        lab.row("CPU ms of 1 M tokens beside numpy: " + name,
                {"tnk": {"ms": times[0]}, "official": {"ms": times[1]}}, "ms", target=">= 1", detail=True)


GROUPS = {"numbers": numbers}
