#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shell blocks of the README and of the guides work when a reader pastes them:
in an empty folder, with an empty HOME, and with the commands and libraries of this
build. Only the ports are changed, so that two runs do not meet.

usage: run_readme.py TNK_COMMAND BUILD_DIR

A block is pasted here, or test/debian/bare.sh pastes it. The blocks of a guide run in
one shell, one after the other, with a local server as the index of the guides says,
or with what SETTINGS has for that guide. Output is TAP.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/cli"), str(ROOT / "test/support")]
from console import TNK, Canned, Local, NoTerminal, Terminal, check, plan, skip
from file_hub import FileHub
from model_hub import ModelHub
from ports import reserve
from usage import USAGE_ANSWERS

BUILD = pathlib.Path(sys.argv[2])
BARE = "test/debian/bare.sh"
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
    "for name in Ada": [" train/loss  last 0.", "step 1   ", " first: train/loss   last ", "the report is both.html"],
    "tnk run list": ["tnk/byte-lm", "weights/first"],
    "tnk checkpoint set-ttl": ["Expires in 2592000 seconds", "Downloaded to",
                               "/external_weights/hf\n", "Repo ID", "Deleted 0"],
    "lib=$HOME": ["/tnk/bin/tnk\n", "/tnk/lib/", "\nhello\n"],
    "tnk gateway --model tnk/byte-lm --port 8002 --key": ['"admin_key_required"', "there is no such answer"],
    "export TNK_GATEWAY_URL": ["max_tokens", "run-7", "0 of 200000"],
    "tnk auth login": ["Logged in", "yes\n", "nobody@localhost\n", "is removed"],
    "tnk billing usage": ["a/model", "a@b", "checkpoint_read"],
    "echo 'Hello, world' | tnk tokenize": ['8 10 "or"', "\n12\n", "#$%&'()"],
}
# In a new root, since they install packages.
PASTED_IN_BARE = ("sh examples/quickstart.sh", "sh test/install.sh build")
# What shows, after a block that says nothing, that it has worked.
PROBES = {
    "tnk gateway --model tnk/byte-lm --port 8002 --key": """reward=http://127.0.0.1:8002/s/other/tnk/reward
curl -s -H 'Authorization: Bearer agents-may-have-this' $reward -d '{"reward":1}'
curl -s -H "Authorization: Bearer $(cat admin.key)" $reward -d '{"reward":1}'
""",
    "lib=$HOME": """command -v tnk
tnk version
cc -std=gnu11 hello.c $(pkg-config --cflags --libs tnk libuv) -o hello
ldd hello
./hello
""",
}
RETRY = "--retry 60 --retry-delay 1 --retry-connrefused"
SERVERS = ("tnk local", "tnk gateway")  # such a line without & is for another terminal
CLIENT = "tnk gateway keys"


def text_of(block, ports):
    """The block, with what is for another terminal in the background."""
    lines = []
    for line in block.splitlines():
        waits = line.startswith(SERVERS) and not line.startswith(CLIENT) and not line.rstrip().endswith("&")
        if waits:
            line = line.split("  #")[0]
        lines.append(f"{line} &" if waits else line)
        if waits:  # the reader goes on when the server says that it listens
            scheme = "https" if "--tls-cert" in line else "http"
            port = re.search(r"--port (\d+)", line)[1]
            lines.append(f"curl -sk {RETRY} {scheme}://127.0.0.1:{port}/api/v1/healthz >/dev/null")
    return re.sub(r"\b(?:800[012]|8443)\b", lambda port: str(ports[port[0]]), "\n".join(lines) + "\n")


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


def end_all(shell):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGKILL)


def paste(text, folder, env):
    """What one shell prints for the text, in which ports are replaced."""
    with (folder / "out").open("w+") as out:
        shell = subprocess.Popen(["sh"], cwd=folder, env=env, stdin=subprocess.PIPE, stdout=out,
                                 stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            shell.communicate(text, timeout=240)
        finally:
            end_all(shell)
        out.seek(0)
        return out.read()


def paste_at_terminal(text, folder, env, answers):
    """The same with a person who answers what is asked: (question, answer)."""
    terminal = Terminal("-c", f"{text}\necho '{END}'\n", command="sh", cwd=folder, env=env)
    try:
        for question, answer in answers:
            terminal.until(question)
            terminal.send(answer)
        terminal.until(END)
    finally:
        end_all(terminal.process)
        terminal.end()
    return terminal.text.replace("\r\n", "\n")


MARK, END = "---- block ----", "---- end ----"
SERVER = """tnk local --port 8000
export TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local
"""


class Setting:
    """What a reader of a guide has: `first` is pasted before its blocks, unless they
    start a server themselves, `env` is added to the environment, `words` are the
    reader's own in place of those in capitals. With `answers`, also with none, the
    shell has a terminal, at which they are typed."""

    def __init__(self, first=SERVER, env=None, words=None, answers=None):
        self.first, self.env, self.words, self.answers = first, env or {}, words or {}, answers


def of_server(env):
    return "".join(f"export {name}={value}\n" for name, value in env.items())


@contextlib.contextmanager
def with_key(folder):
    key = "tml-canary-0123456789"
    yield Setting(f"tnk local --port 8000 --api-key {key}\n"
                  "export TINKER_BASE_URL=http://127.0.0.1:8000\n",
                  answers=[("not shown): ", key + "\r")])


@contextlib.contextmanager
def with_usage(folder):
    with Canned(USAGE_ANSWERS) as server:
        yield Setting(of_server(server.env))


@contextlib.contextmanager
def with_installation(folder):
    """As from --prefix=$HOME/tnk: the files of pkg-config alone have the prefix in them."""
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                    folder / "stage"], check=True, stdout=subprocess.DEVNULL)
    found, = (folder / "stage").rglob("tnk.pc")
    prefix = re.search(r"^prefix=(/.*)$", found.read_text(), re.M)[1]
    (folder / "stage" / prefix[1:]).rename(folder / "tnk")
    for file in (folder / "tnk").rglob("*.pc"):
        file.write_text(file.read_text().replace(f"prefix={prefix}\n", f"prefix={folder}/tnk\n"))
    yield Setting()


@contextlib.contextmanager
def with_model(folder):
    files = {"tokenizer.json": ROOT / "test/tokenizers/data/qwen2.json"}
    (folder / "my-model").mkdir()
    shutil.copy(files["tokenizer.json"], folder / "my-model/tokenizer.json")
    with FileHub("Qwen/Qwen3-8B", files) as hub:
        yield Setting(SERVER.replace("8000", "8000 --stub", 1), hub.env(folder / "hf"))


@contextlib.contextmanager
def with_checkpoints(folder):
    with ModelHub("hf_canary") as hub, Local() as local:
        run = local.model(local.session())
        path = local.save(run, "first", 1)
        yield Setting(of_server(local.env), hub.env(folder / "hf"), {"PATH": path, "ID": run}, answers=())


@contextlib.contextmanager
def with_admin_key(folder):
    (folder / "admin.key").write_text("canary-0123456789\n")
    yield Setting()


@contextlib.contextmanager
def with_server(folder):
    yield Setting()


SETTINGS = {"guides/connecting.md": with_key, "guides/costs.md": with_usage,
            "guides/gateway.md": with_admin_key, "guides/installing.md": with_installation,
            "guides/text.md": with_model, "guides/weights.md": with_checkpoints}
tried = set()


def kind_of(block, page):
    start = next((start for start in (*PASTED, *PASTED_IN_BARE) if block.startswith(start)), None)
    check(start is not None, f"a block of {page} is tried somewhere", block)
    if start in PASTED_IN_BARE:
        path = page if page == "README.md" else f"examples/{page}"
        check(f"\n  paste {path} '{start}'\n" in (ROOT / BARE).read_text(), f"{page}: {BARE} pastes: {start}")
    tried.add(start)
    return start


def run_blocks(page, texts):
    """What a shell prints for them, and the text that it was given."""
    text = f"echo '{MARK}'\n".join(["", *texts])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        env = prepare(folder)
        with SETTINGS.get(page, with_server)(folder) as setting:
            for word, own in setting.words.items():
                text = re.sub(rf"(?<!\$)\b{word}\b", own, text)
            if page != "README.md" and "tnk local --port 8000" not in text:
                text = setting.first + text
            text = text_of(text, {port: reserve() for port in ("8000", "8001", "8002", "8443")})
            given = (text, folder, {**env, **setting.env})
            if setting.answers is None:
                return paste(*given), text
            return paste_at_terminal(*given, setting.answers), text


def judge(page, blocks):
    """Paste the blocks into one shell, and look at the output of each."""
    kinds = [(block, kind_of(block, page)) for block in blocks]
    pasted = [(block, start) for block, start in kinds if start in PASTED]
    if not pasted:
        return
    try:
        got, text = run_blocks(page, [block + PROBES.get(start, "") for block, start in pasted])
    except NoTerminal:
        skip(page, "no terminals here (/dev/pts)")
        return
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
        entries = {*PASTED, *PASTED_IN_BARE}
        check(tried == entries, "no entry is out of date", entries - tried)
    plan()


main()
