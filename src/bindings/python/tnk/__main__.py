# SPDX-License-Identifier: MIT
"""python -m tnk run SCRIPT [ARGUMENT ...]: runs a program of the official client.

`-m MODULE` in place of SCRIPT runs a module.
"""
from __future__ import annotations

import os
import runpy
import sys

import tnk


def main() -> None:
    arguments = sys.argv[1:]
    if len(arguments) < 2 or arguments[0] != "run" or arguments[1] == "-m" and len(arguments) < 3:
        sys.exit("usage: python -m tnk run SCRIPT [ARGUMENT ...]\n       python -m tnk run -m MODULE [ARGUMENT ...]")
    tnk.install()
    if arguments[1] == "-m":
        sys.argv = arguments[2:]
        # As `python -m` has it: the working directory comes first.
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments[1:]
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[1]))
        runpy.run_path(arguments[1], run_name="__main__")


if __name__ == "__main__":
    main()
