# SPDX-License-Identifier: MIT
"""A proxy that writes down what clients send to the server behind it."""

import collections
import http.client
import http.server
import json
import threading
import urllib.parse

Request = collections.namedtuple("Request", "method path headers body")


class Recorder:
    """`requests` of the case that runs. A case may change members of the
    answer to client/config, have answers replaced by a fault or held back
    until the next case, and bring answers of its own, for what depends on a
    server's data."""

    def __init__(self, url):
        self.address = urllib.parse.urlsplit(url).netloc
        self.lock = threading.Condition()
        self.requests = []
        self.config = {}
        self.faults = []
        self.answers = []
        self.over = threading.Event()  # what is held may go
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # One write an answer, or the client waits for an acknowledgement.
            wbufsize = -1
            disable_nagle_algorithm = True

            def serve(self):
                recorder.serve(self)

            do_GET = do_POST = do_PUT = do_DELETE = serve

            def log_message(self, *_args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def begin(self, case):
        self.over.set()
        self.over = threading.Event()
        with self.lock:
            self.requests = []
            self.config = case.get("config", {})
            self.faults = [dict(f) for f in case.get("faults", [])]
            self.answers = [dict(a) for a in case.get("answers", [])]

    def await_request(self, path):
        """Return once the case has sent a request for the path."""
        with self.lock:
            if not self.lock.wait_for(lambda: any(r.path.endswith("/" + path) for r in self.requests), 60):
                raise RuntimeError(f"no request for {path} among {[r.path for r in self.requests]}")

    @staticmethod
    def take(entries, path, kind=None):
        """The first entry for a path that has not been used up: it counts once
        unless it says how often."""
        path = path.split("?")[0]
        for entry in entries:
            if entry.get("type", kind) != kind:
                continue
            if path.endswith("/" + entry["path"]) and entry.get("times", 1) > 0:
                entry["times"] = entry.get("times", 1) - 1
                return entry
        return None

    def serve(self, handler):
        length = int(handler.headers.get("content-length") or 0)
        body = handler.rfile.read(length)
        request = Request(handler.command, handler.path, list(handler.headers.items()), body)
        with self.lock:
            self.requests.append(request)
            self.lock.notify_all()
            fault = self.take(self.faults, handler.path, handler.headers.get("x-tinker-request-type"))
            given = None if fault is not None else self.take(self.answers, handler.path)
            over = self.over
        if fault is not None and fault.get("hold"):
            over.wait(60)
            handler.close_connection = True
            return
        if fault is not None:
            self.answer(handler, fault["status"], fault.get("headers", {}), b'{"detail":"a fault"}')
            return
        if given is not None:
            # So that answers can lead here.
            body = json.dumps(given.get("body")).replace("$URL", self.url)
            self.answer(handler, given.get("status", 200), {}, body.encode())
            return
        try:
            status, headers, answer = self.forward(request)
        except OSError:
            handler.close_connection = True
            return
        if handler.path.endswith("/client/config") and status == 200:
            answer = json.dumps(json.loads(answer) | self.config).encode()
        self.answer(handler, status, headers, answer)

    def forward(self, request):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        hop = ("host", "connection", "content-length", "accept-encoding")
        headers = {k: v for k, v in request.headers if k.lower() not in hop}
        connection.request(request.method, request.path, request.body or None, headers)
        answer = connection.getresponse()
        kept = ("content-type", "retry-after")
        result = (answer.status, {k: v for k, v in answer.getheaders() if k.lower() in kept},
                  answer.read())
        connection.close()
        return result

    @staticmethod
    def answer(handler, status, headers, body):
        try:
            handler.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
            handler.wfile.flush()
        except OSError:
            handler.close_connection = True
