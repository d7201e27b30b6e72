#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shell blocks of the README and of the guides work when a reader pastes them:
in an empty folder, with an empty HOME, and with the commands and libraries of this
build. Only the ports are changed, so that two runs do not meet.

usage: run_readme.py BUILD_DIR TNK_COMMAND

A block is either pasted, or RUN_ELSEWHERE names the test that covers it and why it
is not pasted here. The blocks of a guide run in one shell, one after the other, with
a local server as the index of the guides says. Output is TAP.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/support"))
from tap import check, plan, skip

BUILD, TNK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
# The beginning of a block -> what its output has in it.
PASTED = {
    "cc -std=gnu11 hello.c": ["\nhello\n"],
    "cc -std=gnu11 program.c": [],
    "cc -std=gnu11 chat.c": [],
    "cc -std=gnu11 tutorial.c": ["begins after step 0\n", "step 60: loss "],
    "tnk local --port 8000 --data": ["begins after step 0\n", "step 150\n", "session"],
    "tnk local --port 8000 &\nexport TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local\ntnk gateway":
        ['"finish_reason"', '"role"'],
    "tnk local --port 8000 &": [],
    "openssl req": ['"status"'],
    "echo '{\"messages\"": ["Hello"],
    "tnk ping": ["holds", "absent"],
    "tnk conform --spend": ["holds"],
    "for i in 1 2": ["examples             8\n", "\ntrained 30 steps, loss 0.0"],
    "tnk run list": [],
}
RUN_ELSEWHERE = {
    "sh examples/quickstart.sh": "test/debian/bare.sh",
    "sh test/install.sh build": "test/debian/bare.sh and check_install.sh",
    "lib=$HOME": "test/hygiene/check_install.sh: an installation",
    "tnk auth login": "test/cli/run_account.py: it asks for a key",
    "tnk gateway --model tnk/byte-lm --key": "test/gateway/run_gateway.py: a file with a key",
    "tnk billing usage": "test/cli/run_rest.py: for administrators",
    "tnk checkpoint set-ttl": "test/cli/run_rest.py, run_weights.py and run_push.py: the reader's paths, and a hub",
    "echo 'Hello, world' | tnk tokenize": "test/cli/run_tokenize.py: files of a hub",
}
RETRY = "--retry 9 --retry-connrefused"
BACKGROUND = "tnk local"  # a line with it and without & is for another terminal


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def text_of(block, ports):
    """The block, with what is for another terminal in the background."""
    lines = []
    for line in block.splitlines():
        waits = line.startswith(BACKGROUND) and not line.rstrip().endswith("&")
        lines.append(f"{line.split('  #')[0]} &" if waits else line)
        if waits:  # the reader goes on when the server says that it listens
            scheme = "https" if "--tls-cert" in line else "http"
            lines.append(f"curl -sk {RETRY} {scheme}://127.0.0.1:8000/api/v1/healthz >/dev/null")
    return re.sub(r"\b(?:800[01]|8443)\b", lambda port: str(ports[port[0]]), "\n".join(lines) + "\n")


def prepare(folder):
    """What a reader has made by then, and how an installation is found."""
    (folder / "bin").mkdir()
    command = folder / "bin/tnk"
    # As on a busy machine: what comes in the next line is there before the server.
    command.write_text(f'#!/bin/sh\ncase $1 in local|gateway) sleep 0.5 ;; esac\nexec {TNK} "$@"\n')
    command.chmod(0o755)
    for source in (ROOT / "examples/hello.c", *(ROOT / "examples/guides").glob("*.c")):
        shutil.copy(source, folder)
    shutil.copy(ROOT / "examples/hello.c", folder / "program.c")
    found = ("PATH", "LANG", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
    env = {name: os.environ[name] for name in found if name in os.environ}
    libraries = ":".join(str(BUILD / "src" / part) for part in ("", "tokenizers", "chat", "gateway"))
    return {**env, "HOME": str(folder), "PATH": f"{folder}/bin:{env['PATH']}",
            "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled"), "LD_LIBRARY_PATH": libraries}


def paste(text):
    """What one shell prints for the text, in which ports are replaced."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        env = prepare(folder)
        out = (folder / "out").open("w+")
        shell = subprocess.Popen(["sh"], cwd=folder, env=env, stdin=subprocess.PIPE, stdout=out,
                                 stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            shell.communicate(text, timeout=240)
        finally:
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        out.seek(0)
        return out.read()


MARK = "---- block ----"
SERVER = """tnk local --port 8000
export TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local
"""
tried = set()


def kind_of(block, page):
    start = next((start for start in (*PASTED, *RUN_ELSEWHERE) if block.startswith(start)), None)
    check(start is not None, f"a block of {page} is tried somewhere", block)
    if start in RUN_ELSEWHERE:
        skip(f"{page}: {start}", RUN_ELSEWHERE[start])
    tried.add(start)
    return start


def judge(page, blocks):
    """Paste the blocks into one shell, and look at the output of each."""
    kinds = [(block, kind_of(block, page)) for block in blocks]
    pasted = [(block, start) for block, start in kinds if start in PASTED]
    if not pasted:
        return
    text = f"echo '{MARK}'\n".join(["", *(block for block, _ in pasted)])
    if page != "README.md" and "tnk local --port 8000" not in text:
        text = SERVER + text
    ports = {port: free_port() for port in ("8000", "8001", "8443")}
    text = text_of(text, ports)
    got = paste(text)
    parts = got.split(MARK)[1:]
    check(len(parts) == len(pasted), f"{page}: every block was run", got)
    for (_, start), part in zip(pasted, parts):
        missing = [words for words in PASTED[start] if words not in part]
        wrong = re.search(r"error:|not found$|No such file", part, re.M)
        check(not missing and not wrong, f"{page}: {start.splitlines()[0]}", f"{missing} missing\n{text}\n{got}")


def blocks_of(path):
    return re.findall(r"```sh\n(.*?)```", path.read_text(), re.S)


def main():
    if not shutil.which("curl"):
        skip("all", "there is no curl")
    else:
        for block in blocks_of(ROOT / "README.md"):  # each on its own
            judge("README.md", [block])
        for guide in sorted((ROOT / "examples/guides").glob("*.md")):
            judge(f"guides/{guide.name}", blocks_of(guide))
        check(tried == {*PASTED, *RUN_ELSEWHERE}, "no entry is out of date", {*PASTED, *RUN_ELSEWHERE} - tried)
    plan()


main()
