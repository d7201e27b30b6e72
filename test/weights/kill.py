#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A download that is killed at random moments and begun anew each time.

usage: kill.py TAKE

A service and a store of files play in this process. Moments are counted in what
they have sent, not in time: each kill follows one of them, wherever that is.
Every file ends complete and equal. The directory is never there before. After a
kill, no more than 1 MiB of what the program has read of a file is fetched again.
"""
import hashlib
import http.server
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from tap import check, plan  # noqa: E402

MIB = 1 << 20
KILLS = 20
PIECE = 32 * 1024
PATH = "tinker://r/external_weights/a"
URLS = "/api/v1/training_runs/r/checkpoints/external_weights/a/external_weights_urls"


class Moments:
    """Counts what happens, until as much of it has as one life may see."""

    def __init__(self):
        self.left = None
        self.changed = threading.Condition()

    def begin(self, left):
        with self.changed:
            self.left = left

    def tick(self):
        with self.changed:
            if self.left is not None:
                self.left -= 1
            self.changed.notify_all()

    def end(self):
        """The life has seen enough."""
        with self.changed:
            self.left = 0
            self.changed.notify_all()

    def wait(self, child):
        """Until it has seen enough, or has ended by itself: then its status."""
        with self.changed:
            while self.left is None or self.left > 0:
                self.changed.wait(0.01)
                if child.poll() is not None:
                    return child.returncode
        return None


def waits_in_sockets(server, client):
    """How many bytes, sent from one local port to the other, nobody has read yet. Only Linux says
    so; elsewhere the test counts them as read, and may fail on a busy machine."""
    table = pathlib.Path("/proc/net/tcp")
    count = 0
    for line in table.read_text().splitlines()[1:] if table.exists() else []:
        _, local, peer, _, queues = line.split()[:5]
        ports = tuple(int(end.split(":")[1], 16) for end in (local, peer))
        if ports == (server, client):
            count += int(queues.split(":")[0], 16)
        if ports == (client, server):
            count += int(queues.split(":")[1], 16)
    return count


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files = {}
    reached = {}  # file -> where the last connection of it ended
    under_way = {}  # file -> the client's port of that connection
    twice = 0  # the most bytes that one life has fetched again of a file
    lock = threading.Lock()
    moments = Moments()

    def log_message(self, *args):
        pass

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer({})

    def sign(self):
        here = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.answer({"urls": {name: f"{here}/f/{name}?s=x" for name in self.files},
                     "expires": "2100-01-01T00:00:00Z"})

    def do_GET(self):
        if self.path.split("?")[0] == URLS:
            self.sign()
        else:
            self.fetch()

    def fetch(self):
        try:
            self.give(self.path.split("?")[0][len("/f/"):])
        except OSError:
            self.close_connection = True

    def give(self, name):
        data = self.files[name]
        tag = '"' + hashlib.sha256(data).hexdigest()[:16] + '"'
        start = 0
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and self.headers.get("If-Range", tag) == tag:
            start = int(wanted[1])
        port = self.client_address[1]
        with self.lock:
            Handler.twice = max(self.twice, self.reached.get(name, 0) - start)
            self.reached[name] = start
            self.under_way[name] = port
        self.send_response(206 if start else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range",
                             f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        for at in range(start, len(data), PIECE):
            piece = data[at:at + PIECE]
            with self.lock:
                if self.under_way.get(name) != port:
                    self.close_connection = True
                    return
                self.reached[name] = at + len(piece)
            self.wfile.write(piece)
            self.wrote()

    @classmethod
    def cut(cls, server):
        """The client, which stands still, reads no more of what is under way.

        A system that is late with a program's turn keeps megabytes in its sockets.
        """
        with cls.lock:
            for name, port in cls.under_way.items():
                cls.reached[name] -= waits_in_sockets(server, port)
            cls.under_way.clear()

    def wrote(self):
        self.moments.tick()
        time.sleep(0.004)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args):
        super().__init__(*args)
        self.changed = threading.Condition()
        self.accepted = set()  # addresses of clients
        self.n_open = 0

    def handle_error(self, *args):
        pass  # connections of killed clients

    def process_request(self, request, client_address):
        with self.changed:
            self.accepted.add(client_address)
            self.n_open += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.changed:
                self.n_open -= 1
                self.changed.notify_all()

    def drain(self):
        """Until it has read all that a client without a process has sent. Connections are accepted in
        order, so none of that client can follow this one."""
        with socket.create_connection(self.server_address) as last:
            name = last.getsockname()
        with self.changed:
            while name not in self.accepted or self.n_open > 0:
                self.changed.wait()
            self.accepted.clear()


def serve(handler):
    """A server in threads of its own; its URL."""
    handler.own = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=handler.own.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{handler.own.server_address[1]}"


def one_life(handler, command, moments):
    """The exit status; None: it was killed behind so many moments. By then the service has done
    all that the process has asked for."""
    handler.moments.begin(moments)
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    status = handler.moments.wait(child)
    if status is None:
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        handler.cut(urllib.parse.urlsplit(command[1]).port)
        child.send_signal(signal.SIGKILL)
        child.wait()
    handler.own.drain()
    return status


def main():
    take = sys.argv[1]
    rng = random.Random(14)
    Handler.files = {f"part-{i}.bin": rng.randbytes(4 * MIB + i)
                     for i in range(3)}
    Handler.files["deep/adapter_config.json"] = b"{}"
    url = serve(Handler)
    n_kills = 0
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "out"
        n_rounds = 0
        while n_kills < KILLS:
            n_rounds += 1
            Handler.reached.clear()
            Handler.under_way.clear()
            code = None
            while code is None:
                code = one_life(Handler, [take, url, PATH, str(target)],
                                rng.randrange(1, 130) if n_kills < KILLS else None)
                n_kills += code is None
            # It may have been killed when all but its own end was over.
            if code != 0:
                check((target / "part-0.bin").exists(), "a download that was begun anew fails only when all is there")
                break
            for name, data in Handler.files.items():
                check((target / name).read_bytes() == data, f"{name} is complete and equal")
            left = [p.name for p in pathlib.Path(folder).iterdir() if p != target]
            check(not left, "nothing is left beside the directory", left)
            target.rename(pathlib.Path(folder) / "done")
            subprocess.run(["rm", "-rf", str(pathlib.Path(folder) / "done")], check=True)
    print(f"# {n_kills} kills in {n_rounds} downloads, {Handler.twice} bytes twice at most")
    check(Handler.twice <= MIB, "after a kill no more than 1 MiB of a file comes twice", Handler.twice)
    plan()


if __name__ == "__main__":
    main()
