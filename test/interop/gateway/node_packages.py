# SPDX-License-Identifier: MIT
"""The folder with npm's packages that the tests here share, and scripts that run there."""
import pathlib
import re
import shutil
import subprocess

PACKAGES = ["openai@7.59.0", "@anthropic-ai/sdk@1.14.0", "ai@7.0.173", "@ai-sdk/openai@4.0.118",
            "@ai-sdk/anthropic@4.0.105", "zod@4.6.7"]
HERE = pathlib.Path(__file__).parent


def node_folder(folder):
    """A folder with npm's packages, or why there is none."""
    if not shutil.which("node") or not shutil.which("npm"):
        return None, "node and npm are not installed"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
    if int(re.match(r"v(\d+)", version)[1]) < 20:
        return None, f"node is too old: {version.strip()}, and the packages need 20"
    folder = pathlib.Path(folder).resolve() / "node"
    done = folder / "done"  # has the packages that are there
    if not done.exists() or done.read_text().split() != PACKAGES:
        folder.mkdir(parents=True, exist_ok=True)
        install = subprocess.run(["npm", "install", "--silent", "--prefix", str(folder), *PACKAGES],
                                 capture_output=True, text=True, cwd=folder)
        if install.returncode != 0:
            return None, "npm's packages are out of reach"
        done.write_text("\n".join(PACKAGES))
    return folder, None


def run_node(where, script, *args, env=None):
    """What a script of this folder has printed, run where the packages are."""
    for file in HERE.glob("*.mjs"):
        (where / file.name).write_bytes(file.read_bytes())
    return subprocess.run(["node", str(where / script), *args], capture_output=True, text=True, timeout=120, env=env)
