#!/usr/bin/env python3
"""Fail when a file under src/ includes a header of a sibling or higher room.

A room is a folder of src/ or a folder inside one. RANK orders them: a file may
include its own room and those of lower ranks that its row does not exclude;
rooms of one rank do not see each other. The programs beside the layers
(command, servers, tokenizers) have an order of their own inside and see
of the library what their row in BESIDE names. Internal includes are written
"room/file.h", public ones "tnk/file.h"; any other quoted form is an error too,
so that nothing slips past the check. A folder without a rank is an error.
"""
import pathlib
import re
import sys

RANK = {
    "base": 0,
    "codec/age": 1, "codec/format": 1, "codec/stream": 1, "codec/data": 1.1,
    "codec/tar": 1.1, "codec/message": 1.2,
    "codec/rest": 1.2, "codec/numbers": 1, "codec/ledger": 1.3,
    "codec/observe": 1.1,
    "flow": 1, "flow/purse": 1,
    "loop": 2, "net": 3, "http": 4, "task/recover": 5.6,
    "task/call": 5, "task/session": 5.1, "task/future": 5.2,
    "task/sample": 5.3, "task/train": 5.4, "task/service": 5.5,
    "task/rest": 5.5, "task/hosted": 5.5,
    "task/fetch": 5, "task/weights": 5.6, "task/ledger": 5.6,
    "task/hub": 5.6, "task/push": 5.7,
    "api": 6,
}
# Pairs that the ranks alone would allow: a side room, and what works apart.
BLIND = [("flow", "codec"), ("codec", "flow"), ("task/hub", "task")]
# What is seen all the same.
SHARED = {"task/fetch"}

LOCAL = {"local/base": 0, "local/lm": 0, "local/fault": 1,
         "local/stub": 3, "local": 3, "local/call": 4, "local/ledger": 5,
         "local/store": 6, "local/future": 7, "local/sample": 8,
         "local/train": 9, "local/links": 10, "local/server": 11}
TOKENIZERS = {"tokenizers/unicode": 0, "tokenizers/split": 1,
              "tokenizers/model": 2, "tokenizers/coding": 3,
              "tokenizers/format": 4, "tokenizers/sentencepiece": 5,
              "tokenizers": 6}
CHAT = {"chat/value": 0, "chat/lex": 0.5, "chat/template": 1, "chat/message": 1,
        "chat/answer": 2, "chat/render": 3, "chat": 4}
GATEWAY = {"gateway/wire": 0, "gateway/record": 1, "gateway": 2}
CLI = {"cli/base": 0, "cli/frame": 1, "cli/out": 2, "cli/ask": 3,
       "cli/serve": 4.6, "cli/text": 4, "cli/rest": 4, "cli/account": 4, "cli/sample": 4.5, "cli/conform": 4, "cli": 5}
# program -> the ranks of its own rooms, what it sees of others
BESIDE = {
    "server": ({"server": 0}, {"base"}),
    "local": (LOCAL, {"base", "codec", "server"}),
    "tokenizers": (TOKENIZERS, {"base"}),
    "chat": (CHAT, {"base", "codec"}),
    "gateway": (GATEWAY, {"base", "codec", "server"}),
    "cli": (CLI, {"base", "codec", "server", "local", "gateway"}),
}

# A room of a program that works on the insides of the library.
INSIDE = {"cli/conform": {"flow", "loop", "net", "http", "api"}}

INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
GENERATED = re.compile(r"[a-z_]+\.pb-c\.h$")


def top(room):
    return room.split("/")[0]


def is_in(room, place):
    return room == place or room.startswith(place + "/")


def allowed(own, room):
    """Whether a file of the room `own` may include one of `room`."""
    if room in (own, "tnk"):
        return True
    if top(own) in BESIDE:
        ranks, others = BESIDE[top(own)]
        if top(room) != top(own):
            return top(room) in others | INSIDE.get(own, set())
    else:
        ranks = RANK
        for sees, hidden in BLIND:
            if (is_in(own, sees) and is_in(room, hidden) and room != own
                    and room not in SHARED):
                return False
    return own in ranks and room in ranks and ranks[room] < ranks[own]


def known(room):
    ranks = BESIDE[top(room)][0] if top(room) in BESIDE else RANK
    return room in ranks


def main():
    src = pathlib.Path(sys.argv[1])
    bad = 0
    files = [p for p in src.rglob("*") if p.suffix in (".c", ".h", ".cc")]
    for path in sorted(files):
        own = path.relative_to(src).parent.as_posix()
        if not known(own):
            print(f"{path}: the folder \"{own}\" has no rank")
            bad = 1
        for n, line in enumerate(path.read_text().splitlines(), 1):
            m = INCLUDE.match(line)
            if not m or GENERATED.fullmatch(m[1]):
                continue
            room = pathlib.PurePosixPath(m[1]).parent.as_posix()
            if not allowed(own, room):
                print(f"{path}:{n}: {own} may not include \"{m[1]}\"")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
