# SPDX-License-Identifier: MIT
"""An environment of its own for a test that needs packages of PyPI.

    sys.path.insert(0, .../test/support)
    from own_venv import enter
"""
import os
import pathlib
import subprocess
import sys
import venv


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def enter(folder, *packages):
    """Go on in a Python that has the packages: the script starts anew. One that is
    imported by another name is "module=package". Without PyPI all is skipped."""
    modules = [package.split("=")[0] for package in packages]
    packages = [package.split("=")[-1] for package in packages]
    folder = pathlib.Path(folder).resolve()
    python = folder / "bin/python"
    if pathlib.Path(sys.prefix) == folder:
        return
    try:
        if subprocess.run([python, "-c", "import " + ", ".join(modules)],
                          capture_output=True, check=False).returncode != 0:
            raise FileNotFoundError
    except OSError:
        try:
            venv.create(folder, with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "-q", *packages],
                           check=True, capture_output=True, text=True,
                           timeout=300)
        except (OSError, subprocess.SubprocessError) as e:
            said = (getattr(e, "stderr", None) or str(e)).strip()
            skip_all(f"{' '.join(packages)} cannot be installed: {said.splitlines()[-1:]}")
    os.execv(python, [str(python), *sys.argv])
