# SPDX-License-Identifier: MIT
"""A stand-in for a model hub on this machine, from which one model is downloaded.

    with FileHub("org/model", {"tokenizer.json": path}) as hub:
        run(..., env={**os.environ, **hub.env(folder)})
    hub.seen

Each file is a large one: it is redirected to a signed address, on another port.
model_hub.py has the hub that takes what is pushed.
"""
import hashlib
import pathlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        hub = self.server.hub
        hub.seen.append(self.command + " " + self.path)
        place, _, name = self.path.partition("?")[0].rpartition("/")
        content = hub.files.get(name)
        if place == "/signed":
            self.reply(200, [], content)
        elif not place.startswith(f"/{hub.model}/resolve/"):
            self.reply(404, [("X-Error-Message", "Repository not found")])
        elif content is None:
            self.reply(404, [("X-Error-Code", "EntryNotFound"), ("X-Repo-Commit", COMMIT)])
        else:
            self.reply(302, [("X-Repo-Commit", COMMIT),
                             ("X-Linked-Etag", f'"{hashlib.sha256(content).hexdigest()}"'),
                             ("X-Linked-Size", str(len(content))),
                             ("Location", f"{hub.storage}/signed/{name}?key=canary")])

    do_HEAD = do_GET


class FileHub:
    """As long as the with-block. `files`: name -> the path of a file with its content."""

    def __init__(self, model, files):
        self.model = model
        self.files = {name: pathlib.Path(path).read_bytes() for name, path in files.items()}
        self.seen = []  # "METHOD path"

    def __enter__(self):
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
        for server in self.servers:
            server.hub = self
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url, self.storage = (f"http://127.0.0.1:{s.server_port}" for s in self.servers)
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def env(self, home):
        return {"HF_ENDPOINT": self.url, "HF_HOME": str(home), "no_proxy": "*"}
