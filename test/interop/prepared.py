# SPDX-License-Identifier: MIT
"""The client's command line, imported once: to import it takes a second of a processor,
most commands a few hundredths.

Reads lines of JSON: the arguments of a command, and the files for its three streams.
A fork runs each, as `python -m tinker.cli` does, and ends like any Python program. The
answer is a line with the command's status.
"""

import importlib
import json
import os
import pkgutil
import runpy
import sys
import warnings

warnings.simplefilter("ignore")
import tinker  # noqa: E402, F401
import tinker.cli.commands  # noqa: E402

for module in pkgutil.iter_modules(tinker.cli.commands.__path__):
    importlib.import_module(f"tinker.cli.commands.{module.name}")


def take_streams(paths):
    for number, (path, flags) in enumerate(zip(paths, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY))):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    # What this one has read ahead belongs to the next commands.
    sys.stdin = open(0, encoding=sys.stdin.encoding, closefd=False)


requests = sys.stdin
for line in iter(requests.readline, ""):
    arguments, streams = json.loads(line)
    child = os.fork()
    if child == 0:
        take_streams(streams)
        sys.argv = ["tinker", *arguments]
        runpy.run_module("tinker.cli", run_name="__main__", alter_sys=True)
        break
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
