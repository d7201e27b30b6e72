#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train on packed data: the same runs as with chats, in constant memory.

usage: run_train_packed.py TNK_COMMAND TOKENIZER_DATA_DIR [--memory]

--memory measures memory too, which means nothing in a build with a sanitizer.

Output is TAP, see test/support/tap.py.
"""
import array
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import urllib.request
import zlib

from console import CLEAN, TNK, Local, check, plan, skip, tnk
from train_runs import chat, ended_in_the_middle, metrics, weights, write

CHATS = [chat(f"{i % 5}?", "ab" * (1 + i % 7)) for i in range(25)]
BASE = ("--local", "--learning-rate", "0.01", "--save-every", 3)
# The header: magic, byte order, version, ten numbers and a weight, two checksums.
HEAD = struct.Struct("=8s2I8Qd4Q2I")
ENTRY = struct.Struct("=Q2I")
N_EXAMPLES, WEIGHT = 3, 11


def same_run(a, b):
    return metrics(a) == metrics(b) and weights(a, a / "served") == weights(b, b / "served")


def same_as_chats(folder, data, packed):
    """Each way to choose, order and weigh the examples has the same result."""
    for name, args in (
            ("epochs", ("--batch", 4, "--epochs", 2)),
            ("steps", ("--batch", 4, "--steps", 9, "--seed", 7)),
            ("split", ("--batch", 4, "--steps", 6, "--eval-split", 0.2, "--eval-every", 2)),
            ("eval", ("--batch", 4, "--steps", 4, "--eval", data)),
            ("tokens", ("--batch-tokens", 100, "--epochs", 2)),
            ("mean", ("--batch", 4, "--steps", 4, "--reduction", "mean", "--eval-split", 0.2))):
        chats, other = folder / f"{name}-chats", folder / f"{name}-packed"
        for run, file in ((chats, data), (other, packed)):
            got = tnk("train", file, *BASE, *args, "--run", run)
            check(got.returncode == 0, f"{name}: trains", got)
        check(same_run(chats, other), f"{name}: the same metrics and weights")
        dry = [tnk("train", file, "--local", "--dry-run", "--json", *args).stdout for file in (data, packed)]
        check(dry[0] == dry[1] and "trained_tokens" in dry[0], f"{name}: the same plan", dry)
    run = folder / "eval-both"
    got = tnk("train", packed, *BASE, "--batch", 4, "--steps", 4, "--eval", packed, "--run", run)
    check(got.returncode == 0 and same_run(run, folder / "eval-chats"), "packed data for the evaluation", got)


def two_files(folder, data):
    lines = data.read_text().splitlines(True)
    for name, some in (("one", lines[:9]), ("two", lines[9:])):
        (folder / f"{name}.jsonl").write_text("".join(some))
        got = tnk("chat-data", "--packed", folder / f"{name}.pack", folder / f"{name}.jsonl")
        check(got.returncode == 0, "it is packed", got)
    for kind in ("jsonl", "pack"):
        got = tnk("train", folder / f"one.{kind}", folder / f"two.{kind}", *BASE, "--batch", 4, "--run",
                  folder / f"both-{kind}")
        check(got.returncode == 0, f"two files .{kind}", got)
    check(same_run(folder / "both-jsonl", folder / "both-pack"), "two files: the same metrics and weights")


def cut(folder, data):
    """A cut while packing is that of tnk train."""
    got = tnk("chat-data", "--packed", folder / "cut.pack", "--max-length", 25, data)
    check(got.returncode == 0 and "examples are cut" in got.stderr, "it is cut", got)
    for name, args in (("cut-chats", (data, "--max-length", 25)), ("cut-packed", (folder / "cut.pack",))):
        got = tnk("train", *args, *BASE, "--batch", 4, "--run", folder / name)
        check(got.returncode == 0, name, got)
    check(same_run(folder / "cut-chats", folder / "cut-packed"), "cut: the same metrics and weights")
    said = [json.loads(tnk("train", *args, "--local", "--dry-run", "--json").stdout)
            for args in ((data, "--max-length", 25), (folder / "cut.pack",))]
    check(said[0] == said[1] and said[0]["cut"] > 0, "the plan counts what is cut", said)


def killed(folder, data, packed):
    """Killed after some steps, and resumed with the other form of the same data too."""
    args = (*BASE, "--batch", 4, "--epochs", 2)
    for name, first, second in (("packed", packed, packed), ("to-chats", packed, data), ("to-packed", data, packed)):
        run = folder / f"killed-{name}"
        ended_in_the_middle([TNK, "train", *map(str, (first, *args)), "--run", run], run, 5, signal.SIGKILL)
        got = tnk("train", second, *args, "--run", run)
        check(got.returncode == 0 and "resuming after step" in got.stderr and same_run(run, folder / "epochs-chats"),
              f"killed and resumed, {name}: the same metrics and weights", got)


def head_with(content, **changes):
    """The file with another header, whose checksum is right."""
    fields = list(HEAD.unpack(content[:HEAD.size]))
    for at, value in changes.items():
        fields[int(at[1:])] = value
    head = HEAD.pack(*fields)
    return head[:-4] + struct.pack("=I", zlib.crc32(head[:-4])) + content[HEAD.size:]


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1:]


def damaged(folder, packed):
    """(kind, contents, words): each is found before the first request or at its step."""
    content = packed.read_bytes()
    fields = HEAD.unpack(content[:HEAD.size])
    index = len(content) - fields[N_EXAMPLES] * ENTRY.size
    order = content[:8] + struct.pack(">I" if sys.byteorder == "little" else "<I", 0x01020304) + content[12:]
    for kind, bad, words in (
            ("a version", head_with(content, _2=2), ("another version",)),
            ("a byte order", order, ("byte order",)),
            ("a bit of the header", flip(content, 40), ("header is damaged",)),
            ("a bit of the index", flip(content, index + 4), ("index is damaged",)),
            ("a bit of the last entry", flip(content, len(content) - 1), ("index is damaged",)),
            ("a bit of an id", flip(content, HEAD.size + 4), ("example 1: ", "checksum differs")),
            ("a bit of a weight", flip(content, index - 1), ("example 25: ", "checksum differs")),
            ("the end of the index cut", content[:-1], ("truncated",)),
            ("the index cut", content[:index], ("truncated",)),
            ("the examples cut", content[:index // 2], ("truncated",)),
            ("the header cut", content[:20], ("truncated",)),
            ("more bytes", content + b"\0", ("bytes after its end",)),
            ("no examples", head_with(content[:HEAD.size], _3=0, _4=0), ("no example",)),
            ("counts that overflow", head_with(content, _3=2**64 - 1, _4=2**61), ("truncated",)),
            ("a longest example", head_with(content, _5=3), ("index is not valid",)),
            ("a smaller vocabulary", head_with(content, _8=5), ("another vocabulary", "tnk/byte-lm")),
            ("another vocabulary", head_with(content, _7=1), ("another vocabulary",))):
        file = folder / "bad.pack"
        file.write_bytes(bad)
        got = tnk("train", file, *BASE, "--batch", 25, "--steps", 1, "--run", folder / f"bad-{kind.replace(' ', '-')}")
        check(got.returncode == 6 and "bad.pack: " in got.stderr and all(word in got.stderr for word in words),
              f"{kind}: the file and the reason are named", (words, got))


def refused(folder, data, packed, tokenizers):
    """Options and files that packed data cannot be used with."""
    write(folder / "wrong.jsonl", [CHATS[0], {"messages": []}])
    tokenizer = pathlib.Path(tokenizers) / "gpt2.json"
    for kind, args, status, words in (
            ("mixed files", ("train", packed, data, "--local"), 2, ("cannot be mixed", "chats.pack", "chats.jsonl")),
            ("another method", ("train", packed, "--local", "--method", "dpo"), 2, ("--method sft",)),
            ("a cut", ("train", packed, "--local", "--max-length", 9), 2, ("tnk chat-data --max-length",)),
            ("another tokenizer", ("train", packed, "--local", "--tokenizer", tokenizer), 6,
             ("another vocabulary", "chats.pack", "gpt2.json"))):
        got = tnk(*args, "--run", folder / "none")
        check(got.returncode == status and all(word in got.stderr for word in words), f"{kind}: refused",
              (words, got))
        check(not (folder / "none").exists(), f"{kind}: nothing was begun")
    for kind, args, status, words in (
            ("two outputs", ("--packed", folder / "x.pack", "--show", data), 2, ("only one of",)),
            ("a cut without a file", ("--max-length", 9, data), 2, ("--max-length needs --packed",)),
            ("a folder that there is not", ("--packed", folder / "no" / "x.pack", data), 6, ("x.pack", "No such file")),
            ("wrong chats", ("--packed", folder / "x.pack", folder / "wrong.jsonl"), 1, ("wrong.jsonl:2: ",))):
        got = tnk("chat-data", *args)
        check(got.returncode == status and all(word in got.stderr for word in words), f"{kind}: refused",
              (words, got))
    check(not list(folder.glob("x.pack*")), "no file is left")


def changed(folder, packed):
    """The file changes while the run waits for a result. The run ends with an error that
    names it, and continues when the file is right again."""
    content = packed.read_bytes()
    fields = HEAD.unpack(content[:HEAD.size])
    index = len(content) - fields[N_EXAMPLES] * ENTRY.size
    ones = bytes(b ^ 1 for b in content[HEAD.size:index])
    for kind, bad, words in (("truncated", content[:HEAD.size], ("it is truncated", "has changed")),
                             ("overwritten", content[:HEAD.size] + ones + content[index:],
                              ("checksum differs", "has changed"))):
        file, run = folder / f"{kind}.pack", folder / f"changed-{kind}"
        file.write_bytes(content)
        args = ["train", file, "--model", "tnk/byte-lm", "--run", run, "--batch", "4", "--epochs", "2", *BASE[1:]]
        with Local("--verbose", "--data", folder / f"{kind}-served", "--fault-control", "--faults",
                   "try_again/retrieve_future@2-:active") as server:
            env = {**CLEAN, **server.env}
            with subprocess.Popen([TNK, *map(str, args)], env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
                while "/optim_step " not in server.process.stderr.readline():
                    pass
                with file.open("r+b") as out:
                    out.truncate(len(bad))
                    out.write(bad)
                with urllib.request.urlopen(urllib.request.Request(server.url + "/tnk/faults", b"", method="PUT")):
                    pass
                said = process.communicate(timeout=120)[1]
            check(process.returncode == 6 and f"{kind}.pack: example " in said and all(w in said for w in words),
                  f"{kind} while it runs: the file is named", (words, process.returncode, said))
            file.write_bytes(content)
            got = tnk(*args, env=server.env)
        check(got.returncode == 0 and metrics(run) == metrics(folder / "epochs-chats"),
              f"{kind} while it runs: the same command continues", got)


def memory(folder, packed):
    """A file much larger than the limit is trained below it."""
    n, n_examples = 64 * 1024, 320
    fields = list(HEAD.unpack(packed.read_bytes()[:HEAD.size]))
    entries, offset = [], HEAD.size
    ids = array.array("i", [7]) * n
    ones = array.array("f", [1.0]) * n
    with (folder / "large.pack").open("wb") as out:
        out.write(bytes(HEAD.size))
        body = ids.tobytes() + ones.tobytes()
        for i in range(n_examples):
            entries.append(ENTRY.pack(offset, n, zlib.crc32(struct.pack("=QI", i, n) + body)))
            offset += out.write(body)
        index = b"".join(entries)
        out.write(index)
        fields[N_EXAMPLES:N_EXAMPLES + 4] = n_examples, n * n_examples, n, 1
        fields[WEIGHT] = float(n_examples * (n - 1))
        fields[-2] = zlib.crc32(index)
        head = HEAD.pack(*fields)
        out.seek(0)
        out.write(head[:-4] + struct.pack("=I", zlib.crc32(head[:-4])))
    size = (folder / "large.pack").stat().st_size
    with Local("--stub") as server:
        process = subprocess.Popen(
            [TNK, "train", folder / "large.pack", "--model", "tnk/byte-lm", "--batch", "4", "--steps", "80",
             "--run", folder / "large"], env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check(process.returncode == 0 and used.ru_maxrss * 1024 < 64 * 2**20 < size / 2,
          "less memory than the file has", (process.returncode, used.ru_maxrss, size))


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    lines = write(top / "chats.jsonl", CHATS)
    pack = top / "chats.pack"
    got = tnk("chat-data", "--packed", pack, lines)
    check(got.returncode == 0 and "25 examples" in got.stderr and not got.stdout, "chats are packed", got)
    same_as_chats(top, lines, pack)
    two_files(top, lines)
    cut(top, lines)
    killed(top, lines, pack)
    damaged(top, pack)
    refused(top, lines, pack, sys.argv[2])
    changed(top, pack)
    if "--memory" in sys.argv:
        memory(top, pack)
    else:
        skip("less memory than the file has", "a sanitizer keeps freed memory")
plan()
