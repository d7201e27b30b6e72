#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What only the package tnk has: arithmetic, chat, the gateway.

usage: run_python_own.py PACKAGE_DIR EXTENSION TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from tap import check, plan

sys.path.insert(0, str(HERE))
from python_package import install, serve

sys.dont_write_bytecode = True
PACKAGE, EXTENSION, TNK = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
FOLDER = install(PACKAGE, EXTENSION)
sys.path.insert(0, str(FOLDER))
sys.path.insert(0, str(HERE / "python"))
import chat
import gateway
import rl


def main():
    rl.run()
    chat.run()
    server, url = serve(TNK)
    gateway.run(url)
    server.stdin.close()
    server.wait(20)
    plan()


main()
