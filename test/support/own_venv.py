# SPDX-License-Identifier: MIT
"""An environment of its own for a test that needs packages of PyPI.

    sys.path.insert(0, .../test/support)
    import own_venv

uv makes it if it is in the PATH, in a thirtieth of the time of pip, else Python's venv
and pip do.
"""
import os
import pathlib
import shutil
import subprocess
import sys

TIMEOUT_S = 900


class Unreachable(Exception):
    """There is no environment; the text is the reason."""


def run(*command):
    try:
        ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT_S,
                             check=False)
    except (OSError, subprocess.SubprocessError) as e:
        raise Unreachable(str(e)) from e
    if ran.returncode != 0:
        said = (ran.stderr or ran.stdout).strip().splitlines() or ["no reason was given"]
        raise Unreachable(said[-1][:300])


def install(python, *args):
    """As `pip install`, into the environment of an interpreter."""
    uv = shutil.which("uv")
    if uv is not None:
        try:
            run(uv, "pip", "install", "-q", "--python", python, *args)
            return
        except Unreachable:
            pass
    run(python, "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check", *args)


def create(folder):
    """An environment with pip. Returns its interpreter."""
    uv = shutil.which("uv")
    python = pathlib.Path(folder) / "bin/python"
    if uv is not None:
        try:
            run(uv, "venv", "-q", "--clear", "--seed", "--no-python-downloads", "--python", sys.executable, folder)
            return python
        except Unreachable:
            pass
    run(sys.executable, "-m", "venv", "--clear", folder)
    return python


def make(folder, *packages, alone=()):
    """Returns the interpreter of an environment that has the packages, and those of `alone` without
    their dependencies. It is made once."""
    python = pathlib.Path(folder) / "bin/python"
    mark, wanted = pathlib.Path(folder) / "installed", "\n".join([*packages, *alone])
    if mark.is_file() and mark.read_text() == wanted:
        return python
    create(folder)
    if packages:
        install(python, *packages)
    if alone:
        install(python, "--no-deps", *alone)
    mark.write_text(wanted)
    return python


def enter(folder, *packages, alone=()):
    """Go on in such an environment: the script starts anew."""
    folder = pathlib.Path(folder).resolve()
    if pathlib.Path(sys.prefix).resolve() != folder:
        python = make(folder, *packages, alone=alone)
        os.execv(python, [str(python), *sys.argv])


def enter_or_skip(folder, *packages):
    """The same for a test whose output is TAP."""
    try:
        enter(folder, *packages)
    except Unreachable as e:
        skip_all(f"{' '.join(packages)} cannot be installed: {e}")


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)
