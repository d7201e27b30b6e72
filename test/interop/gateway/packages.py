# SPDX-License-Identifier: MIT
"""An environment of Python with packages, which tests here share."""
import pathlib
import subprocess
import sys


def enter(folder, name, packages):
    """Go on in the environment of this folder, with these packages of PyPI, which
    a later run finds there. Out of reach: status 77, with the reason."""
    python = pathlib.Path(folder) / "venv/bin/python"
    if pathlib.Path(sys.prefix).resolve() == python.parent.parent.resolve():
        return
    lines = [] if python.exists() else [[sys.executable, "-m", "venv", python.parent.parent]]
    done = python.parent / f"done-{name}"
    if not done.exists():
        lines.append([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    for line in lines:
        ran = subprocess.run([str(word) for word in line], capture_output=True, text=True)
        if ran.returncode != 0:
            print("skipped: the packages are out of reach:", ran.stderr.strip()[-300:])
            sys.exit(77)
    done.touch()
    sys.exit(subprocess.run([str(python), *sys.argv]).returncode)
