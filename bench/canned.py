# SPDX-License-Identifier: MIT
"""A server for what the stub does not have: answers that are given once and
then come as fast as Python can; the configuration is the stub's."""
import http.server
import json
import threading
import time
import urllib.request

CONFIG = ("client/config", "client/dynamic_config")


class Canned:
    """`answers`: from "METHOD path" (below /api/v1/, without a query) to what
    is sent as JSON. `busy_s` is the time that requests were here."""

    def __init__(self, stub, answers):
        self.busy_s = 0.0
        self.n_requests = 0
        # Texts are ready before the first request comes.
        self.answers = {name: json.dumps(body).encode() for name, body in answers.items()}
        for path in CONFIG:
            request = urllib.request.Request(stub.url + "/api/v1/" + path, b"{}", {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.answers["POST " + path] = answer.read()
        canned = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1
            disable_nagle_algorithm = True

            def parse_request(self):
                self.began = time.perf_counter()
                return super().parse_request()

            def serve(self):
                canned.serve(self)

            do_GET = do_POST = do_PUT = do_DELETE = serve

            def log_message(self, *_args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, handler):
        handler.rfile.read(int(handler.headers.get("content-length") or 0))
        name = "%s %s" % (handler.command, handler.path.split("?")[0].removeprefix("/api/v1/"))
        body = self.answers.get(name, b'{"detail":"Not Found"}')
        handler.send_response(200 if name in self.answers else 404)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        handler.wfile.flush()
        self.n_requests += 1
        self.busy_s += time.perf_counter() - handler.began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
