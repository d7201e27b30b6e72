#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the wheel of the Python package and uses it as its README says.

usage: wheel.py BUILD_DIR

The wheel is installed into an empty environment without an index. mypy and pyright
check the package and the programs of the documents. The source distribution is built
against the libtnk of BUILD_DIR. Skips with 77 where PyPI cannot be reached, and pyright
where it has no Node.

Output is TAP, see test/support/tap.py.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/support"))
from tap import check, plan  # noqa: E402

PACKAGE = ROOT / "src/bindings/python"


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)


def skip(why):
    print(f"wheel: skipped: {why}")
    sys.exit(77)


def make_environment(folder, *packages):
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    if packages:
        ran = run(python, "-m", "pip", "install", "-q", *packages)
        if ran.returncode != 0:
            skip("PyPI cannot be reached or does not have it: " + (ran.stderr.strip().splitlines() or ["?"])[-1])
    return python


def blocks():
    for path in (PACKAGE / "README.md", ROOT / "examples/guides/python.md"):
        yield from re.findall(r"```python\n(.*?)```", path.read_text(), re.S)


def uses_wheel(wheel, folder, tnk):
    python = make_environment(folder / "clean")
    ran = run(python, "-m", "pip", "install", "--no-index", wheel)
    check(ran.returncode == 0, "the wheel is installed without an index", ran)
    with subprocess.Popen([tnk, "local", "--port", "0", "--exit-with-stdin"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as server:
        url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
        env = {"PATH": os.environ["PATH"], "TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local", "no_proxy": "*"}
        ran = run(python, "-c", next(blocks()), env=env)
        server.stdin.close()
    check(ran.returncode == 0 and len(ran.stdout.splitlines()) == 11, "the program of the README runs", ran)
    native = next((folder / "clean").rglob("_native.abi3.so"))
    names = run("nm", "-D", "--defined-only", native).stdout
    check([line.split()[-1] for line in names.splitlines()] == ["PyInit__native"], "it exports nothing else", names)
    return python


def has_types(folder, wheel):
    checker = make_environment(folder / "types", "mypy", "pyright", "numpy")
    run(checker, "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    programs = []
    for i, block in enumerate(blocks()):
        programs.append(folder / f"program_{i}.py")
        programs[-1].write_text(block)
    wrong = folder / "wrong.py"
    wrong.write_text('import tnk\ntnk.ServiceClient().create_sampling_client(model_path=7)\n')
    ran = run(checker, "-m", "mypy", "--strict", cwd=PACKAGE)
    check(ran.returncode == 0, "mypy accepts the package", ran)
    ran = run(checker, "-m", "mypy", *programs, cwd=folder)
    check(ran.returncode == 0, "and programs that use it", ran)
    check(run(checker, "-m", "mypy", wrong, cwd=folder).returncode != 0, "and finds a wrong argument")
    ran = run(checker, "-m", "pyright", "--pythonpath", checker, cwd=PACKAGE, timeout=300)
    if "error" in ran.stderr and "node" in ran.stderr.lower():
        print("# pyright has no Node here")
        return
    check(ran.returncode == 0, "pyright accepts the package", ran)


def builds_source(sdist, folder, build):
    python = make_environment(folder / "source", "setuptools>=61", "wheel")
    install = [python, "-m", "pip", "install", "--no-index", "--no-build-isolation", sdist]
    ran = run(*install, env={"PATH": os.environ["PATH"], "PKG_CONFIG_LIBDIR": "/nonexistent"})
    check(ran.returncode != 0 and "libtnk is not installed" in ran.stdout + ran.stderr,
          "without libtnk the error says so", ran)
    env = {**os.environ, "PKG_CONFIG_PATH": str(build / "meson-uninstalled")}
    ran = run(*install, env=env)
    check(ran.returncode == 0, "the source distribution builds against an installed libtnk", ran)
    libraries = [str(build / "src" / name) for name in ("", "chat", "gateway", "tokenizers")]
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": ":".join(libraries)}
    ran = run(python, "-c", "import tnk; print(tnk.__version__, tnk.chat.Template.from_text().stops)", env=env)
    check(ran.stdout == "0.1.0 ['\\n\\nUser:']\n", "and can be imported", ran)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_environment(folder / "probe", "wheel")
        ran = run(sys.executable, PACKAGE / "build_wheel.py", folder / "dist", "--work", build / "wheel")
        check(ran.returncode == 0, "the wheel and the source distribution are built", ran)
        wheel = next((folder / "dist").glob("*-abi3-manylinux*.whl"))
        uses_wheel(wheel, folder, build / "src/tools/tnk/tnk")
        builds_source(next((folder / "dist").glob("*.tar.gz")), folder, build)
        has_types(folder, wheel)
    plan()


main()
