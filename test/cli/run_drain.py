#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""End tnk local and tnk gateway by a signal while they have work.

usage: run_drain.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import reserve
from tap import check, plan

TNK = sys.argv[1]
HOUR = "3600000"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Server:
    """A command that listens, until it has been ended by a signal."""

    def __init__(self, *args, **env):
        # Kept, so that nobody else listens there in the end.
        self.port = reserve()
        self.process = subprocess.Popen(
            [TNK, *args, "--port", str(self.port), "--exit-with-stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "no_proxy": "*", **env},
            # Under nohup a command ignores SIGHUP, and what it starts would too.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        self.url = self.process.stdout.readline().split()[-1]

    def send(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def ended(self, what):
        check(self.process.wait(60) == 0, f"{what}: status 0", self.process.returncode)
        self.process.stdin.close()
        self.process.stdout.close()
        with socket.socket() as late:
            check(late.connect_ex(("127.0.0.1", self.port)) != 0, f"{what}: nothing listens")


class Client:
    """One connection of HTTP/1.1."""

    def __init__(self, server):
        self.http = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask(self, path, body=None):
        self.http.request("GET" if body is None else "POST", path,
                          None if body is None else json.dumps(body, separators=(",", ":")))
        answer = self.http.getresponse()
        return answer.status, json.loads(answer.read())

    def call(self, path, body):
        return self.ask("/api/v1/" + path, body)

    def sampler(self):
        session = self.call("create_session", {"tags": [], "sdk_version": "0"})[1]["session_id"]
        self.at = {"sampling_session_id": self.call("create_sampling_session", {
            "session_id": session, "sampling_session_seq_id": 0,
            "base_model": "tnk/byte-lm"})[1]["sampling_session_id"]}
        self.n = 0

    def sample(self):
        self.n += 1
        return self.call("asample", {
            **self.at, "seq_id": self.n, "num_samples": 1, "sampling_params": {"max_tokens": 2},
            "prompt": {"chunks": [{"type": "encoded_text", "tokens": [1]}]}})

    def poll(self, sample):
        return self.call("retrieve_future", {"request_id": sample[1]["request_id"]})


def until_draining(client):
    """New work is refused as soon as the signal has come."""
    while True:
        status, answer = client.sample()
        if status != 200:
            check(status == 503 and "shutting down" in answer["detail"], "new work is refused",
                  (status, answer))
            return


def results_are_fetched():
    """A result is there for whoever polls, also for one who polls afterwards."""
    for number in SIGNALS:
        what = f"local, {number.name}"
        server = Server("local", "--latency-ms", "1000", "--drain-s", "86400")
        first, second = Client(server), Client(server)
        first.sampler()
        held, later = first.sample(), first.sample()
        server.send(number)
        second.at, second.n = first.at, 10
        until_draining(second)
        for kind, sample in (("under way", held), ("there", later)):
            status, answer = first.poll(sample)
            check(status == 200 and len(answer["sequences"]) == 1, f"{what}: a result {kind}",
                  (status, answer))
        # Those that only asked whether it drains are left to the grace period.
        first.http.close()
        second.http.close()
        server.ended(what)


def new_connections_fetch():
    """A client may poll on another connection than the one of its request."""
    for what, args in (("the model", ()), ("the stub", ("--stub",))):
        server = Server("local", "--latency-ms", "500", "--drain-s", "86400", *args)
        first = Client(server)
        first.sampler()
        work = [first.sample() for _ in range(3)]
        first.http.close()
        server.send()
        for sample in work:
            late = Client(server)
            late.http.request("POST", "/api/v1/retrieve_future",
                              json.dumps({"request_id": sample[1]["request_id"]}, separators=(",", ":")))
            answer = late.http.getresponse()
            check(answer.status == 200 and b"try_again" not in answer.read(),
                  f"{what}: a new connection gets its result")
            late.http.close()
        server.ended(what)


def nobody_is_left():
    """Nobody polls, and no connection is open: the server ends long before its work."""
    for what, args in (("the model", ()), ("the stub", ("--stub",))):
        server = Server("local", "--latency-ms", HOUR, "--drain-s", "86400", *args)
        client = Client(server)
        client.sampler()
        client.sample()
        client.http.close()
        server.send()
        server.ended(f"{what}, whose clients are gone")


def ends_early():
    for what, args, n_signals in (
            ("a second signal", ("--drain-s", "86400"), 2),
            ("the bound", ("--drain-s", "1"), 1),
            ("no time at all", ("--drain-s", "0"), 1)):
        server = Server("local", "--latency-ms", HOUR, *args)
        client = Client(server)
        client.sampler()
        client.sample()
        server.send()
        if n_signals == 2:
            until_draining(client)
            server.send()
        server.ended(what)
        client.http.close()


def nobody_fetches():
    """The connection stays open, and the result is not asked for."""
    server = Server("local", "--drain-s", "86400")
    client = Client(server)
    client.sampler()
    client.sample()
    server.send()
    server.ended("a result that nobody fetches")
    client.http.close()


def asked_of(server):
    """Wait until the stub has accepted a request. On a busy machine its result may be there when the signal
    comes, and the answer must come all the same."""
    client = Client(server)
    while client.ask("/api/v1/stub/counts")[1]["accepted"] == 0:
        pass
    client.http.close()


def commands_finish():
    """The client of the library gets what it has asked for."""
    for what, args in (("the model", ()), ("the stub", ("--stub",))):
        folder = tempfile.TemporaryDirectory()
        log = pathlib.Path(folder.name, "drawn")
        server = Server("local", "--latency-ms", "1000", "--sample-log", str(log), *args)
        command = subprocess.Popen(
            [TNK, "sample", "--json", "--model", "tnk/byte-lm", "--max-tokens", "4", "--samples", "3", "x"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "no_proxy": "*", "TINKER_BASE_URL": server.url,
                 "TINKER_API_KEY": "tml-x"})
        # The command sends a request for each sample. All are logged before their latency is over.
        while log.read_text().count("\n") < 3:
            pass
        server.send()
        out, err = command.communicate(timeout=60)
        check(command.returncode == 0 and len(json.loads(out)["samples"]) == 3,
              f"{what} finishes the samples of a command", (command.returncode, out, err))
        server.ended(what)
        folder.cleanup()


def gateways_finish():
    with tempfile.TemporaryDirectory() as folder:
        for number in SIGNALS:
            what = f"gateway, {number.name}"
            record = pathlib.Path(folder, number.name)
            service = Server("local", "--stub", "--latency-ms", "1000")
            server = Server("gateway", "--model", "tnk/byte-lm", "--record", str(record),
                            TINKER_BASE_URL=service.url, TINKER_API_KEY="tml-x")
            client, got = Client(server), []
            idle = Client(server)
            idle.http.connect()
            asks = threading.Thread(target=lambda: got.append(client.ask("/v1/chat/completions", {
                "max_tokens": 4, "messages": [{"role": "user", "content": "Hi"}]})))
            asks.start()
            asked_of(service)
            server.send(number)
            asks.join(60)
            check(got and got[0][0] == 200, f"{what}: the answer comes", got)
            server.ended(what)
            check('"type":"turn"' in record.read_text(), f"{what}: it is recorded")
            service.send()
            service.ended("its service")
            client.http.close()
            idle.http.close()


results_are_fetched()
new_connections_fetch()
nobody_is_left()
ends_early()
nobody_fetches()
commands_finish()
gateways_finish()
plan()
