#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package tnk for Node, installed in an empty folder, against a local server.

usage: run_node.py SOURCE_DIR ADDON PROJECT_ROOT VERSION TNK_COMMAND

N=50 makes the loops of limits.js 50 times as long. Output is TAP, see
test/support/tap.py.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tap import check, plan, skip

SOURCE, ADDON, ROOT, VERSION, TNK = sys.argv[1:]
SOURCE, ADDON, ROOT, TNK = (str(pathlib.Path(path).resolve()) for path in (SOURCE, ADDON, ROOT, TNK))
TESTS = pathlib.Path(__file__).resolve().parent / "node"


def run(command, folder, env=None, timeout=280):
    return subprocess.run(command, cwd=folder, env={**os.environ, **(env or {})}, capture_output=True, text=True,
                          timeout=timeout)


def install(folder):
    package = folder / f"tnk-{VERSION}.tgz"
    packed = run([sys.executable, SOURCE + "/pack.py", SOURCE, ADDON, ROOT, VERSION, package], folder)
    check(packed.returncode == 0, "the package is packed", packed.stdout + packed.stderr)
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    offline = {"npm_config_offline": "true", "npm_config_audit": "false", "npm_config_fund": "false",
               "npm_config_cache": str(folder / "cache"), "npm_config_update_notifier": "false"}
    installed = run(["npm", "install", "--foreground-scripts", package], folder, offline)
    check(installed.returncode == 0, "it installs without a network and without a compiler",
          installed.stdout + installed.stderr)
    needed = run(["ldd", folder / "node_modules/tnk/prebuilds" / os.listdir(folder / "node_modules/tnk/prebuilds")[0] /
                  "tnk.node"], folder)
    others = [line.split()[0] for line in needed.stdout.splitlines()
              if not re.match(r"\s*(linux-vdso|linux-gate|libm\.|libc\.|libdl\.|libpthread\.|/lib|ld-)", line)]
    print(f"# libraries beside those of C: {' '.join(others) or 'none'}")
    check("libuv" not in needed.stdout, "it uses the libuv of Node", needed.stdout)


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", pathlib.Path(path).read_text(encoding="utf-8"), re.S)


def runs_blocks(folder, url):
    """The programs of the README and of the guide, as modules of both kinds."""
    env = {"TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"}
    texts = blocks(SOURCE + "/README.md", "js") + blocks(ROOT + "/examples/guides/node.md", "js")
    check(len(texts) >= 4, "there are programs in the documents")
    for i, text in enumerate(texts):
        program = folder / f"program{i}.mjs"
        program.write_text(text, encoding="utf-8")
        ended = run(["node", program], folder, env)
        check(ended.returncode == 0 and ended.stdout, f"program {i + 1} of the documents",
              text + ended.stdout + ended.stderr)
    ended = run(["node", "-e", "const { Service } = require('tnk'); console.log(typeof Service)"], folder, env)
    check(ended.stdout == "function\n", "it is a CommonJS module too", ended.stderr)


def runs_suites(folder, url):
    shutil.copytree(TESTS, folder / "tests")
    env = {"TINKER_BASE_URL": url, "TNK_TEST_FOLDER": str(folder / "runs")}
    for name in ("basic", "ends", "limits", "resume"):
        ended = run(["node", "--expose-gc", "--test-reporter=tap", f"tests/{name}.js"], folder, env)
        for ok, what in re.findall(r"^(ok|not ok) \d+ - (.*)$", ended.stdout, re.M):
            check(ok == "ok", f"{name}: {what}", ended.stdout + ended.stderr)
        check(ended.returncode == 0, f"{name}: ends", ended.stdout + ended.stderr)


def has_types(folder):
    compiler = os.environ.get("TNK_TSC") or shutil.which("tsc")
    if compiler is None:
        skip("the declarations compile with --strict", "no TypeScript compiler (tsc, or TNK_TSC)")
        return
    done = run([compiler, "-p", "tests/tsconfig.json"], folder)
    check(done.returncode == 0, "the declarations compile with --strict", done.stdout)


def main():
    server = subprocess.Popen([TNK, "local", "--port", "0", "--exit-with-stdin"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        install(folder)
        runs_blocks(folder, url)
        runs_suites(folder, url)
        has_types(folder)
    server.stdin.close()
    server.wait(20)
    plan()


main()
