# SPDX-License-Identifier: MIT
"""Commands of the client's command line, and of ours."""

import datetime
import functools
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from kit import CALLS, OWN, check, need

TNK = os.environ.get("INTEROP_TNK", "tnk")


LIMIT = 60  # seconds, for a command that hangs


def checked(name, args, code, run_it):
    """What `run_it` returns, whose status must be `code`; None: any."""
    CALLS[name + " " + " ".join(a for a in args if not a.startswith(("-", "tinker:", "/")))] += 1
    ran = run_it()
    check(code is None or ran.returncode == code,
          f"{name} {args}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran


def run(name, command, args, code, typed=None, **env):
    """A command in a process of its own. What is `typed` is read from standard
    input, for there is no terminal to ask at."""
    return checked(name, args, code, lambda: subprocess.run(
        [*command, *args], capture_output=True, text=True, timeout=LIMIT, input=typed or "",
        start_new_session=True, env={**os.environ, **env}))


@functools.cache
def prepared():
    """The process that has the official command line imported. It has no terminal
    either, and ends with this one."""
    return subprocess.Popen([sys.executable, "-W", "ignore", Path(__file__).with_name("prepared.py")],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


def run_prepared(args):
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        for path in streams:
            path.touch()
        process = prepared()
        print(json.dumps([args, list(map(str, streams))]), file=process.stdin, flush=True)
        # Also the imports, the first time.
        if not select.select([process.stdout], [], [], LIMIT)[0]:
            os.killpg(process.pid, signal.SIGKILL)
            raise TimeoutError(f"tinker {args}")
        status = process.stdout.readline()
        _, out, err = (path.read_text() for path in streams)
        check(status, f"tinker {args}: no status\n{out}{err}")
        return subprocess.CompletedProcess(args, int(status), out, err)


def tinker_alone(*args, code=0, **env):
    """The official command, started anew."""
    return run("tinker", [sys.executable, "-W", "ignore", "-m", "tinker.cli"], args, code, **env)


def tinker(*args, code=0, **env):
    """What some modules read of the environment they read when they are imported."""
    return tinker_alone(*args, code=code, **env) if env else checked("tinker", args, code, lambda: run_prepared(args))


def tnk(*args, code=0, **env):
    return run("tnk", [TNK], args, code, **env)


def has_command(group, name=None):
    """Asked of the modules: starting the command takes a second."""
    try:
        module = importlib.import_module(f"tinker.cli.commands.{group}")
    except ImportError:
        return False
    return name is None or name in module.cli.commands


def has_option(group, name, option):
    command = importlib.import_module(f"tinker.cli.commands.{group}").cli.commands[name]
    return any(option in p.opts for p in command.params)


def need_tnk(*words):
    need(subprocess.run([TNK, *words, "--help"], capture_output=True).returncode == 0,
         f"this tnk has no {' '.join(words)}")


def run_of(path):
    return path.removeprefix("tinker://").split("/")[0]


def hours():
    """Those around now, as arguments."""
    now = datetime.datetime.now(datetime.timezone.utc).replace(minute=0, second=0, microsecond=0)
    return [(now + datetime.timedelta(hours=h)).isoformat().replace("+00:00", "Z") for h in (-1, 1)]


def need_call(path):
    """Of the server."""
    OWN.append(path)
    request = urllib.request.Request(os.environ["TINKER_BASE_URL"] + "/api/v1/" + path,
                                     headers={"X-API-Key": os.environ["TINKER_API_KEY"]})
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as error:
        need(error.read() != b'{"detail":"Not Found"}', "not in this server")
