#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A crowd of agents before tnk gateway, a tenth of which hangs up.

usage: run_crowd.py TNK_COMMAND

TNK_TEST_AGENTS: how many ask side by side (100); TNK_TEST_SEED: of the moments
(7). Counted are requests, turns, cancels that the server was sent, and sockets.
Output is TAP, see test/support/tap.py.
"""
import json
import os
import pathlib
import random
import re
import socket
import sys
import tempfile
import threading
import time
from collections import Counter

from gateway import Client, gateway, local, not_drawn, records, turns_of
from tap import check, plan

TNK = sys.argv[1]
AGENTS = int(os.environ.get("TNK_TEST_AGENTS", 100))
SEED = int(os.environ.get("TNK_TEST_SEED", 7))
# Files, beyond the sockets.
OTHERS = 32


class Crowd:
    """What its agents share: how many were answered, and whom."""

    def __init__(self, url):
        self.url = url
        self.host, self.port = url.split("/")[2].split(":")
        self.changed = threading.Condition()
        self.n_answered = 0
        self.n_left = 0
        self.failed = []

    def count(self, status, answer):
        with self.changed:
            self.n_answered += 1
            if status != 200:
                self.failed.append(answer)
            self.changed.notify_all()

    def stay(self, k):
        client = Client(self.url)
        body = {"max_tokens": 6, "messages": [{"role": "user", "content": f"agent {k}"}]}
        self.count(*client.post("/v1/chat/completions", body))
        client.close()

    def leave(self, k, n_more):
        """Ask for much, and hang up when so many others have been answered."""
        body = json.dumps({"max_tokens": 400, "messages": [{"role": "user", "content": f"agent {k}"}]})
        with socket.create_connection((self.host, int(self.port))) as s:
            s.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self.host}\r\n"
                      f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            with self.changed:
                wanted = min(self.n_answered + n_more, AGENTS - AGENTS // 10)
                while self.n_answered < wanted:
                    self.changed.wait(60)
        with self.changed:
            self.n_left += 1


def sockets_of(url):
    """Connections that a server has, of clients that are there or gone."""
    port = int(url.split(":")[2])
    states = Counter()
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[1].endswith(f":{port:04X}"):
            states[words[3]] += 1
    return states["01"] + states["08"]  # established; the other side has closed


def wait_for(what):
    """What has to come in the end; a minute is a failure."""
    end = time.monotonic() + 60
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


def requests(log):
    """Of the server: how often each path was answered with 200."""
    return Counter(re.findall(r"^\d+ POST (\S+) seq=\S+ 200 ", log.read_text(), re.M))


def come_and_go(g, service):
    crowd = Crowd(g.url)
    rng = random.Random(SEED)
    threading.stack_size(256 * 1024)
    threads = [threading.Thread(target=crowd.leave, args=(k, rng.randint(0, 30))) if k % 10 == 0 else
               threading.Thread(target=crowd.stay, args=(k,)) for k in range(AGENTS)]
    n_most = 0

    def files():
        return len(list(pathlib.Path(f"/proc/{g.process.pid}/fd").iterdir()))
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            n_most = max(n_most, files())
            thread.join(0.05)
    check(not crowd.failed, f"{crowd.n_answered} agents are answered, {crowd.n_left} have hung up", crowd.failed[:3])
    # A request waits with one to the agent and one to the service at most.
    check(n_most <= 2 * AGENTS + OTHERS, f"{n_most} descriptors at most", n_most)
    check(wait_for(lambda: sockets_of(g.url) == 0), "no socket of an agent is left", sockets_of(g.url))
    # Those to the service are kept for the next requests.
    check(wait_for(lambda: files() <= sockets_of(service.url) + OTHERS),
          f"{sockets_of(service.url)} to the service, and nothing else", files())


def main():
    with tempfile.TemporaryDirectory() as folder:
        said, drawn, path = (pathlib.Path(folder) / name for name in ("said", "drawn", "record"))
        with local(TNK, "--verbose", "--sample-log", drawn, log=said) as service:
            with gateway(TNK, service, "--record", path, "--repeat-s", "0") as g:
                come_and_go(g, service)

                def ends():
                    lines = records(path)
                    return Counter(line["type"] for line in lines)
                check(wait_for(lambda: ends()["asked"] == ends()["turn"] + ends()["gone"] + ends()["failed"]),
                      "each request has its end", ends())

                def canceled():
                    n = requests(said)
                    return n["/api/v1/cancel_future"], n["/api/v1/asample"] - ends()["turn"]
                check(wait_for(lambda: canceled()[0] == canceled()[1]), "each sample that nobody waits for is canceled",
                      canceled())
                check(canceled()[0] > 0, f"{canceled()[0]} of them")
                check(Client(g.url).chat("hi")[0] == 200, "it serves on")
            check(g.status == 0, "and ends", g.said)
        check(ends()["failed"] == 0, "none has failed", ends())
        check(ends()["gone"] <= AGENTS // 10, f"{ends()['gone']} clients were gone", ends())
        check(not not_drawn(path, drawn), f"{len(turns_of(path))} turns are what was drawn")
    plan()


main()
