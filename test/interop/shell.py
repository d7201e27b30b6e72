# SPDX-License-Identifier: MIT
"""Commands of the client's command line, and of ours."""

import datetime
import importlib
import os
import subprocess
import sys
import urllib.error
import urllib.request

from kit import CALLS, OWN, check, need

TNK = os.environ.get("INTEROP_TNK", "tnk")


def run(name, command, args, code, typed=None, **env):
    """A command whose status must be `code`; None: any. What is `typed` is read
    from standard input, for there is no terminal to ask at."""
    CALLS[name + " " + " ".join(a for a in args if not a.startswith(("-", "tinker:", "/")))] += 1
    ran = subprocess.run([*command, *args], capture_output=True, text=True, timeout=60, input=typed or "",
                         start_new_session=True, env={**os.environ, **env})
    check(code is None or ran.returncode == code,
          f"{name} {args}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran


def tinker(*args, code=0, **env):
    return run("tinker", [sys.executable, "-W", "ignore", "-m", "tinker.cli"], args, code, **env)


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
