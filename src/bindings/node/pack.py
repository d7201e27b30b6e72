#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the package tnk for npm.

usage: pack.py SOURCE_DIR ADDON PROJECT_ROOT VERSION OUTPUT
"""
import json
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

source, addon, root, version, output = sys.argv[1:]
source, root = pathlib.Path(source), pathlib.Path(root)
machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    shutil.copytree(source / "lib", folder / "lib")
    # The source includes its header by the path from src.
    shutil.copytree(source / "addon", folder / "src/bindings/node/addon")
    for name in ("package.json", "README.md", "binding.gyp"):
        shutil.copy(source / name, folder / name)
    shutil.copy(root / "LICENSE", folder / "LICENSE")
    prebuilt = folder / "prebuilds" / f"linux-{machine}"
    prebuilt.mkdir(parents=True)
    shutil.copy(addon, prebuilt / "tnk.node")
    # Line numbers are not needed in a package; failure is no reason to stop.
    subprocess.run(["strip", "--strip-debug", str(prebuilt / "tnk.node")], check=False)
    named = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
    if named != version:
        sys.exit(f"package.json has version {named}, and the library {version}")
    subprocess.run(["npm", "pack", "--silent", "--pack-destination", str(folder)], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    shutil.copy(folder / f"tnk-{version}.tgz", output)
