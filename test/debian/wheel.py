#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The wheel of the Python package on a bare Debian, with the Python of that release.

usage: wheel.py BUILD_DIR 12|13 ...

It builds the wheel and installs it in a bare root (bare.sh), which has Debian's packages
python3 and python3-venv and nothing else. The programs of the package's README and of the
guide run there, against the local server of BUILD_DIR. Ends with 77 and a reason where it
cannot be done.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/bindings/python"
sys.path.insert(0, str(ROOT / "test/bindings"))
from python_package import KEY, serve

INSTALL = """
apt-get -qq update && apt-get -y -qq --no-install-recommends install python3 python3-venv >/dev/null
python3 -m venv /tmp/venv
/tmp/venv/bin/python -m pip install -q --no-index /root/files/*.whl
export no_proxy='*' TINKER_BASE_URL=%s TINKER_API_KEY=%s
/tmp/venv/bin/python -c 'import sys, tnk; print("Python", sys.version.split()[0], "tnk", tnk.__version__)'
cd /tmp
for program in /root/files/*.py; do
  /tmp/venv/bin/python "$program" >"$program.out" || { echo "$program failed"; exit 1; }
  echo "$program: $(wc -l <"$program.out") lines"
done
echo "all programs ran"
"""


def blocks():
    for path in (PACKAGE / "README.md", ROOT / "examples/guides/python.md"):
        for i, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.S)):
            yield f"{path.stem.lower()}_{i}.py", block


def build(work, folder):
    ran = subprocess.run([sys.executable, PACKAGE / "build_wheel.py", folder, "--work", work], capture_output=True,
                         text=True, check=False)
    if ran.returncode != 0:
        print("wheel: skipped: it cannot be built: " + (ran.stderr.strip().splitlines() or ["?"])[-1])
        sys.exit(77)
    return next(folder.glob("*-abi3-manylinux*.whl"))


def runs_on(release, files, url):
    env = {**os.environ, "TNK_FILES": " ".join(map(str, files))}
    command = ["sh", ROOT / "test/debian/bare.sh", release, "sh", "-ec", INSTALL % (url, KEY)]
    ran = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
    print(ran.stdout, end="", flush=True)
    if ran.returncode == 77:
        sys.exit(77)
    if ran.returncode != 0 or "all programs ran" not in ran.stdout:
        sys.exit(f"wheel: it does not work on Debian {release}")


def main():
    build_dir = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = [build(build_dir / "wheel", folder / "dist")]
        for file, block in blocks():
            files.append(folder / file)
            files[-1].write_text(block)
        server, url = serve(build_dir / "src/tools/tnk/tnk")
        for release in sys.argv[2:]:
            runs_on(release, files, url)
        server.stdin.close()
        server.wait(20)


main()
