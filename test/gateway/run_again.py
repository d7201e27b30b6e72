#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests that clients repeat, over both versions of HTTP: one sample each, by
what the local server has drawn.

usage: run_again.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import concurrent.futures
import itertools
import json
import pathlib
import sys
import tempfile

from gateway import gateway, local, records, turns_of
from tap import check, plan
from wire import Http2, answer1, dial, fields, head1, http1, http2

TNK = sys.argv[1]
CHAT = "/v1/chat/completions"


def body_of(text, stream):
    return json.dumps({"max_tokens": 3, "stream": bool(stream),
                       "messages": [{"role": "user", "content": text}]}).encode()


def both(url, versions, asks):
    """The statuses of two requests that are in progress together."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [done.result() for done in [pool.submit(version, url, "POST", CHAT, *ask)
                                           for version, ask in zip(versions, asks)]]


def drawn_for(drawn, *texts):
    """Return the number of samples that were drawn for these texts. Their prompts are bytes."""
    prompts = [bytes(i for i in r["prompt"] if i < 256) for r in records(drawn)]
    return sum(any(text.encode() in prompt for text in texts) for prompt in prompts)


def leave(url, version, headers, body):
    """Send a request, and hang up."""
    if version is http1:
        with dial(url) as peer:
            peer.sendall(head1("POST", CHAT, headers, len(body)) + body)
        return
    with Http2(url) as conn:
        conn.data(conn.head(fields("POST", CHAT, headers)), body)


def is_repeated(url, drawn, path):
    """Each way to repeat a request, in each state."""
    cells = itertools.product(("sampled", "answered", "gone"), ("same", "body", "session"), (0, 1),
                              ((http1, http1), (http1, http2), (http2, http1), (http2, http2)))
    for n, (state, how, stream, versions) in enumerate(cells):
        name = f"{state}, {how}, {'stream' if stream else 'whole'}, {'/'.join(v.__name__ for v in versions)}"
        key = ("Idempotency-Key", f"key-{n}")
        first = ([("X-Tnk-Session", f"s{n}"), key], body_of(f"hi {n}.", stream))
        again = ([("X-Tnk-Session", f"t{n}" if how == "session" else f"s{n}"), key],
                 body_of(f"ho {n}." if how == "body" else f"hi {n}.", stream))
        if state == "sampled" and how != "body":
            got = both(url, versions, (first, again))
        elif state == "gone":
            leave(url, versions[0], *first)
            got = [200, versions[1](url, "POST", CHAT, *again)]
        else:
            got = [version(url, "POST", CHAT, *ask) for version, ask in zip(versions, (first, again))]
        refused = how == "body" and state != "gone"
        # Who hangs up at once may do so before the request has been read.
        n_drawn = drawn_for(drawn, f"hi {n}.", f"ho {n}.")
        n_turns = len([t for t in turns_of(path).values() if t["session"] in (f"s{n}", f"t{n}")])
        if state == "gone" and how != "same":
            check(got[1] in (200, 422) and n_drawn <= 2 and n_turns <= 1, name, (got, n_drawn, n_turns))
        else:
            check(got == [200, 422 if refused else 200], name, got)
            check(n_drawn == n_turns == (2 if how == "session" else 1), f"{name}: samples and turns", (n_drawn, n_turns))


def answers_are_lost(url, drawn, path):
    """A client that hangs up after each answer repeats it until it has it."""
    for n in range(10):
        body = body_of(f"lost {n}.", 0)
        for retry in range(3):
            with dial(url) as peer:
                peer.sendall(head1("POST", CHAT, [("X-Tnk-Session", f"l{n}"),
                                                  ("X-Stainless-Retry-Count", str(retry))], len(body)) + body)
                if retry == 1:
                    peer.recv(1)
                if retry == 2:
                    check(answer1(peer) == 200, f"{n}: the third try")
    n_drawn = drawn_for(drawn, "lost ")
    check(n_drawn == 10, "ten samples", n_drawn)
    check(len([t for t in turns_of(path).values() if t["session"].startswith("l")]) == 10, "ten turns")


def main():
    with tempfile.TemporaryDirectory() as folder:
        drawn, path = (pathlib.Path(folder) / name for name in ("drawn", "record"))
        with local(TNK, "--sample-log", drawn, "--latency-ms", "100") as service, \
                gateway(TNK, service, "--record", path) as g:
            is_repeated(g.url, drawn, path)
            answers_are_lost(g.url, drawn, path)
    plan()


main()
