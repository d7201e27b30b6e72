#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train keeps the service at work: the result of a step may be withheld until
later steps have arrived. A server that sends no metrics has the same losses.

usage: run_train_pipeline.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import http.client
import http.server
import json
import pathlib
import tempfile
import threading
import urllib.parse

from console import Local, check, plan, tnk
from train_runs import chat, metrics, write

# Steps in flight. Large ones need memory.
DEPTH, FEW = 8, 4
# A run that does not send the awaited step has failed, however long this is.
PATIENCE_S = 60


class Front:
    """A proxy before a server. `hold` gets the number of a pass whose result is
    asked for, and returns how many passes must have arrived; `change` gets each
    result in protobuf."""

    def __init__(self, url, hold=None, change=None):
        self.to = urllib.parse.urlsplit(url)
        self.hold, self.change = hold, change
        self.passes = {}
        self.changed = threading.Condition()
        self.missing = None

    def forward(self, handler, body):
        """Returns the status, type and body of the server's answer."""
        connection = http.client.HTTPConnection(self.to.hostname, self.to.port, timeout=120)
        names = {name: value for name, value in handler.headers.items() if name.lower() not in ("host", "connection")}
        connection.request(handler.command, handler.path, body, names)
        answer = connection.getresponse()
        got = answer.status, answer.getheader("Content-Type"), answer.read()
        connection.close()
        return got

    def await_passes(self, body):
        """Until the passes behind this one have arrived."""
        number = self.passes.get(json.loads(body).get("request_id"))
        if number is None or self.hold is None:
            return
        wanted = self.hold(number)
        with self.changed:
            if not self.changed.wait_for(lambda: self.missing or len(self.passes) >= wanted, PATIENCE_S):
                self.missing = f"pass {wanted} while the result of pass {number} is awaited"
                self.changed.notify_all()

    def answer(self, handler, body):
        call = handler.path.rsplit("/", 1)[-1]
        if call == "retrieve_future":
            self.await_passes(body)
        status, kind, got = self.forward(handler, body)
        if call == "forward_backward" and status == 200:
            with self.changed:
                self.passes[json.loads(got)["request_id"]] = len(self.passes) + 1
                self.changed.notify_all()
        if self.change and kind == "application/x-protobuf":
            got = self.change(got)
        return status, kind, got

    def __enter__(self):
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # One write per answer.
            wbufsize = 1 << 16
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, kind, got = front.answer(self, body)
                self.send_response(status)
                if kind:
                    self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(got)))
                self.end_headers()
                self.wfile.write(got)

            do_GET = do_DELETE = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever).start()
        self.env = {"TINKER_BASE_URL": f"http://127.0.0.1:{self.server.server_port}", "TINKER_API_KEY": "tml-local"}
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


# ---- The pipeline -----------------------------------------------------------


def stays_full(folder, stub, name, data, n, depth, first_save, *args):
    """The first save waits for all results, and so does the end of a run. Each
    other step has the next ones behind it."""
    def hold(number):
        return min(number + depth - 1, first_save if number <= first_save else n)

    with Front(stub.url, hold) as front:
        got = tnk("train", data, "--model", "tnk/byte-lm", "--run", folder / name, "--steps", n, "--batch", 1, *args,
                  env=front.env)
    check(front.missing is None, f"{name}: the service has work", front.missing)
    check(got.returncode == 0, f"{name}: it trains", got)
    check(len(front.passes) == n, f"{name}: each step has a pass", len(front.passes))


def pipeline(folder):
    small = write(folder / "small.jsonl", [chat(f"{i}?", "yes") for i in range(5)])
    large = write(folder / "large.jsonl", [chat(f"{i}?", "ab" * 35000) for i in range(2)])
    packed = folder / "small.pack"
    check(tnk("chat-data", "--packed", packed, small).returncode == 0, "it is packed")
    with Local("--stub") as stub:
        for name, data, n, depth, first_save, args in (
                ("one save", small, 30, DEPTH, 30, ("--save-every", 100)),
                ("a save after each step", small, 30, DEPTH, 1, ("--save-every", 1)),
                ("some saves", small, 30, DEPTH, 3, ("--save-every", 3)),
                ("saves as far apart as the steps in flight", small, 40, DEPTH, 8, ("--save-every", 8)),
                ("packed", packed, 30, DEPTH, 30, ("--save-every", 100)),
                ("large steps", large, 12, FEW, 5, ("--save-every", 5))):
            stays_full(folder, stub, name.replace(" ", "-"), data, n, depth, first_save, *args)


# ---- A server without metrics -----------------------------------------------


def without_metrics(message):
    """Leave out field 3 of a result."""
    def varint(at):
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at

    out, at = b"", 0
    while at < len(message):
        begin = at
        tag, at = varint(at)
        if tag & 7 == 2:
            n, at = varint(at)
            at += n
        else:
            at = varint(at)[1]
        if tag >> 3 != 3:
            out += message[begin:at]
    return out


def losses(folder):
    data = write(folder / "chats.jsonl", [chat(f"{i}?", "ab" * (1 + i % 4)) for i in range(12)])
    rows = [("chats", data, ()), ("passes", data, ("--passes", 3)), ("mean", data, ("--reduction", "mean"))]
    for name, file, args in rows:
        got = {}
        for change in (None, without_metrics):
            run = folder / f"{name}-{'none' if change else 'all'}"
            with Local() as local, Front(local.url, change=change) as front:
                ran = tnk("train", file, "--model", "tnk/byte-lm", "--run", run, "--steps", 4, "--batch", 6, *args,
                          env=front.env)
            check(ran.returncode == 0, f"{run.name}: it trains", ran)
            got[change] = [line["train/loss"] for line in map(json.loads, metrics(run).splitlines())]
        check(len(got[None]) == 4 and all(b and abs(a - b) < 1e-5 * a for a, b in zip(*got.values())),
              f"{name}: the same losses without metrics", got)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pipeline(folder)
        losses(folder)
    plan()


main()
