#!/usr/bin/env python3
"""The README's blocks for a shell do what they say, pasted as they stand: in an
empty folder, with an empty HOME, and with the commands and libraries that this
build has made. Only the ports are others, so that two runs do not meet.

usage: run_readme.py BUILD_DIR TNK_COMMAND

A block is either pasted, or RUN_ELSEWHERE says where it is tried or why it is
not. test/debian/bare.sh runs the blocks that install. Output is TAP.
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
    "openssl req": ['"status"'],
    "tnk local --port 8000 &": ['"finish_reason"', '"role"'],
    "tnk conform": ["holds"],
}
RUN_ELSEWHERE = {
    "sh examples/quickstart.sh": "test/debian/bare.sh",
    "sh test/install.sh build": "test/debian/bare.sh and check_install.sh",
    "tnk auth login": "test/cli/run_account.py: it asks for a key",
    "tnk billing usage": "test/cli/run_rest.py: for administrators",
    "echo 'Hello, world' | tnk tokenize": "test/cli/run_tokenize.py: files of a hub",
    "tnk chat-data": "test/cli/run_chat_data.py: a tokenizer of the reader's",
    "tnk run list": "test/cli/run_rest.py: ids of the reader's",
    "tnk checkpoint download": "test/cli/run_weights.py: paths of the reader's",
    "tnk checkpoint push-hf": "test/cli/run_push.py: a hub",
    "lib=$HOME": "test/hygiene/check_install.sh: an installation",
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
    return re.sub(r"\b800[01]\b", lambda port: str(ports[port[0]]), "\n".join(lines) + "\n")


def prepare(folder):
    """What a reader has made by then, and how an installation is found."""
    (folder / "bin").mkdir()
    command = folder / "bin/tnk"
    # As on a busy machine: what comes in the next line is there before the server.
    command.write_text(f'#!/bin/sh\ncase $1 in local|gateway) sleep 0.5 ;; esac\nexec {TNK} "$@"\n')
    command.chmod(0o755)
    shutil.copy(ROOT / "examples/hello.c", folder)
    found = ("PATH", "LANG", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
    env = {name: os.environ[name] for name in found if name in os.environ}
    libraries = ":".join(str(BUILD / "src" / part) for part in ("", "tokenizers", "chat", "gateway"))
    return {**env, "HOME": str(folder), "PATH": f"{folder}/bin:{env['PATH']}",
            "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled"), "LD_LIBRARY_PATH": libraries}


def paste(block):
    ports = {"8000": free_port(), "8001": free_port()}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        env = prepare(folder)
        text = text_of(block, ports)
        if "tnk conform" in block:
            text = text_of("tnk local --port 8000\nexport TINKER_API_KEY=tml-local\n", ports) + text
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
        return out.read(), text


def judge(block):
    start = next((start for start in (*PASTED, *RUN_ELSEWHERE) if block.startswith(start)), None)
    check(start is not None, "a block of the README is tried somewhere", block)
    if start in RUN_ELSEWHERE:
        skip(start, RUN_ELSEWHERE[start])
        return
    got, text = paste(block)
    missing = [words for words in PASTED[start] if words not in "\n" + got]
    check(not missing, f"pasted: {start}", f"{missing} missing\n{text}\n{got}")


def main():
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    if not shutil.which("curl"):
        skip("all", "there is no curl")
    for block in blocks if shutil.which("curl") else []:
        judge(block)
    plan()


main()
