#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The module tnk for Lua, in Lua 5.4, LuaJIT and Neovim, against a local server.

usage: run_lua.py SOURCE_DIR LIBRARY PROJECT_ROOT TNK_COMMAND [lua5.4=NATIVE] [luajit=NATIVE]

LIBRARY is libtnk, which the native modules load. WRAPPER="valgrind -q ..." runs the
interpreters under another program. Output is TAP, see test/support/tap.py.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tap import check, plan, skip

SOURCE, LIBRARY, ROOT, TNK = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
NATIVES = dict(argument.split("=", 1) for argument in sys.argv[5:])
TESTS = pathlib.Path(__file__).resolve().parent / "lua"
WRAPPER = shlex.split(os.environ.get("WRAPPER", ""))


def install(folder, native):
    """The layout that the rockspec makes."""
    (folder / "tnk").mkdir(parents=True)
    shutil.copy(SOURCE / "lua/tnk.lua", folder)
    shutil.copy(native, folder / "tnk/native.so")


def environment(folder, url):
    paths = f"{folder}/?.lua;{TESTS}/?.lua;;"
    libraries = ":".join(filter(None, [str(LIBRARY.parent), os.environ.get("LD_LIBRARY_PATH")]))
    return {**os.environ, "LUA_PATH": paths, "LUA_PATH_5_4": paths, "LUA_CPATH": f"{folder}/?.so;;",
            "LUA_CPATH_5_4": f"{folder}/?.so;;", "LD_LIBRARY_PATH": libraries, "TINKER_BASE_URL": url,
            "TINKER_API_KEY": "tml-local"}


def run(command, env, timeout=280):
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)


def runs_program(what, command, env):
    """One check for each distinct line of TAP that a program prints."""
    ended = run(command, env)
    seen = set()
    for ok, name in re.findall(r"^(ok|not ok) - (.*)$", ended.stdout, re.M):
        if name not in seen or ok != "ok":
            seen.add(name)
            check(ok == "ok", f"{what}: {name}", ended.stdout[-2000:] + ended.stderr[-2000:])
    check(ended.returncode == 0 and "the end" in seen, f"{what}: ends", ended.stdout[-2000:] + ended.stderr[-2000:])


def blocks(path):
    return re.findall(r"```lua\n(.*?)```", path.read_text(encoding="utf-8"), re.S)


def missing(interpreter):
    """Return why the programs cannot run, or None."""
    if interpreter not in NATIVES:
        return f"the headers of {interpreter} were missing in the build"
    if shutil.which(interpreter) is None:
        return f"no {interpreter}"
    if run([interpreter, "-e", "require 'luv'"], dict(os.environ)).returncode != 0:
        return f"no luv for {interpreter}"
    return None


def runs_in(interpreter, folder, url):
    why = missing(interpreter)
    if why is not None:
        skip(interpreter, why)
        return
    install(folder, NATIVES[interpreter])
    env = environment(folder, url)
    for path in sorted(TESTS.glob("*.lua")):
        if path.name not in ("support.lua", "neovim.lua"):
            runs_program(f"{interpreter}: {path.stem}", [*WRAPPER, interpreter, str(path)], env)
    for document in (SOURCE / "README.md", ROOT / "examples/guides/lua.md"):
        for i, text in enumerate(blocks(document)):
            program = folder / "program.lua"
            program.write_text(text, encoding="utf-8")
            ended = run([*WRAPPER, interpreter, str(program)], env)
            check(ended.returncode == 0 and ended.stdout and not ended.stderr,
                  f"{interpreter}: program {i + 1} of {document.name}", text + ended.stdout + ended.stderr)


def runs_in_neovim(folder, url):
    if shutil.which("nvim") is None or "luajit" not in NATIVES:
        skip("Neovim", "no nvim" if "luajit" in NATIVES else "the headers of LuaJIT were missing in the build")
        return
    # Neovim looks for modules in the folders lua of its runtime path.
    install(folder / "lua", NATIVES["luajit"])
    ended = run(["nvim", "--headless", "-u", "NONE", "-i", "NONE", "--cmd", f"set runtimepath^={folder}",
                 "-c", f"luafile {TESTS / 'neovim.lua'}", "-c", "qa!"],
                {**environment(folder / "lua", url), "TNK_EXAMPLE": str(SOURCE / "neovim/tnk_stream.lua")})
    # Headless, print() writes to standard error.
    text = ended.stdout + ended.stderr
    seen = re.findall(r"^(ok|not ok) - (.*?)\s*$", text, re.M)
    for ok, name in seen:
        check(ok == "ok", f"Neovim: {name}", text)
    check(ended.returncode == 0 and ("ok", "the end") in seen, "Neovim: ends", text)


def main():
    server = subprocess.Popen([TNK, "local", "--port", "0", "--exit-with-stdin"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
    with tempfile.TemporaryDirectory() as folder:
        for interpreter in ("lua5.4", "luajit"):
            runs_in(interpreter, pathlib.Path(folder) / interpreter, url)
        runs_in_neovim(pathlib.Path(folder) / "neovim", url)
    server.stdin.close()
    server.wait(20)
    plan()


main()
