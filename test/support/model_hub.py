# SPDX-License-Identifier: MIT
"""A stand-in for a model hub on this machine, that takes what is pushed to it.

    with ModelHub(token="hf_x") as hub:
        run(..., env={**os.environ, **hub.env(folder)})
    hub.calls, hub.files

It has one repository a test, of any name, and its branches share their files.
Large files are those whose names end in .safetensors: they are checked, not kept,
come at once, or in parts of `part_size` bytes.
"""
import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "1" * 40


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.hub = self.server.hub

    def pieces(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while (n := int(self.rfile.readline(), 16)) > 0:
                yield self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            piece = self.rfile.read(min(left, 1 << 20))
            left -= len(piece)
            yield piece

    def answer(self, status, body=b"", headers=()):
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def is_refused(self):
        """The store and the end of an upload in parts have signed addresses."""
        hub, said = self.hub, self.headers.get("Authorization")
        if hub.token is None or said == f"Bearer {hub.token}" or \
                self.path.startswith(("/store/", "/complete/")):
            return False
        # As a careless one: it tells what it was sent.
        self.answer(401, {"error": f"Invalid credentials: {said}"})
        return True

    def do_GET(self):
        hub, path = self.hub, self.path.split("?")[0]
        if self.is_refused():
            hub.calls.append((self.command, path, 401))
        elif path == "/api/whoami-v2":
            hub.calls.append(("GET", path, None))
            self.answer(200, {"name": "owner", "type": "user", "orgs": []})
        elif path.endswith("/README.md"):
            self.look(path)
        else:
            self.answer(200, {"id": hub.repo, "sha": "0" * 40, "siblings": []})

    do_HEAD = do_GET

    def look(self, path):
        """Asked for in one way or another."""
        hub = self.hub
        hub.calls.append(("LOOK", path, None))
        card = hub.files.get("README.md")
        if card is None:
            self.answer(404, b"", [("X-Error-Code", "EntryNotFound"),
                                   ("X-Repo-Commit", "0" * 40)])
        else:
            self.answer(200, card, [("ETag", f'"{hashlib.sha1(card).hexdigest()}"'),
                                    ("X-Repo-Commit", COMMIT)])

    def do_PUT(self):
        hub = self.hub
        if hub.holds:
            hub.held.set()
            hub.ending.wait(60)
            self.close_connection = True
            return
        name, _, query = self.path.partition("?part=")
        sum_, size = hashlib.sha256(), 0
        whole = hub.sums.setdefault(name.partition("?")[0], hashlib.sha256())
        for piece in self.pieces():
            size += len(piece)
            sum_.update(piece)
            whole.update(piece)
        hub.calls.append(("PUT", name.partition("?")[0] + query.partition("&")[0], {
            "token": self.headers.get("Authorization"), "size": size,
            "sum": sum_.hexdigest()}))
        self.answer(200, b"", [("ETag", f'"{sum_.hexdigest()[:8]}"')])

    def actions(self, oid, size):
        hub = self.hub
        if not hub.part_size:
            return {"upload": {"href": f"{hub.url}/store/{oid}?{hub.signature}"}}
        count = -(-size // hub.part_size)
        header = {str(i + 1): f"{hub.url}/store/{oid}?part={i + 1}&{hub.signature}"
                  for i in range(count)}
        return {"upload": {"href": f"{hub.url}/complete/{oid}", "header": {
            "chunk_size": str(hub.part_size), **header}}}

    def do_POST(self):
        hub, path = self.hub, self.path.split("?")[0]
        text = b"".join(self.pieces())
        lines = [json.loads(line) for line in text.splitlines() if line]
        body = lines if "/commit/" in path else lines[0] if lines else None
        if self.is_refused():
            return
        hub.calls.append(("POST", path, body))
        if hub.fails and hub.fails in path:
            self.answer(500, {"error": "not now"})
        elif "/preupload/" in path:
            self.answer(200, {"files": [
                {"path": f["path"], "shouldIgnore": False,
                 "uploadMode": "lfs" if f["path"].endswith(".safetensors")
                 else "regular"} for f in body["files"]]})
        elif path.endswith("/objects/batch"):
            self.answer(200, {"transfer": "multipart" if hub.part_size
                              else "basic", "objects": [
                {**o, "actions": self.actions(o["oid"], o["size"])}
                for o in body["objects"]]})
        elif "/commit/" in path:
            self.commit(path, body)
        elif path == "/api/repos/create":
            self.answer(200, {"url": f"{hub.url}/{hub.repo}"})
        else:
            self.answer(200, {})

    def commit(self, path, body):
        hub = self.hub
        hub.repo = path.removeprefix("/api/models/").partition("/commit/")[0]
        if "/" not in hub.repo:
            hub.repo = "owner/" + hub.repo
        for line in body[1:]:
            value = line["value"]
            hub.files[value["path"]] = \
                value.get("oid") or base64.b64decode(value["content"])
        said = {"commitOid": COMMIT, "success": True,
                "commitUrl": f"{hub.url}/{hub.repo}/commit/{COMMIT}"}
        if "create_pr=1" in self.path:
            said.update(pullRequestUrl=f"{hub.url}/{hub.repo}/discussions/1",
                        pullRequestNum=1)
        self.answer(200, said)


class ModelHub:
    """As long as the with-block. `signature` is a part of signed addresses."""

    def __init__(self, token=None, part_size=0, signature="signature=canary"):
        self.token = token
        self.part_size = part_size
        self.signature = signature
        self.repo = "owner/repository"
        self.calls = []  # (method, path, body)
        self.files = {}  # name -> bytes, or the sum of a large one
        self.sums = {}
        self.holds = False  # what goes to the store gets no answer
        self.held = threading.Event()
        self.fails = ""  # what has this in its path is answered 500
        self.ending = threading.Event()

    def __enter__(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.hub = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.server.shutdown()
        self.server.server_close()

    def reset(self, part_size=0):
        """As new."""
        self.part_size = part_size
        for kept in (self.calls, self.files, self.sums):
            kept.clear()

    def env(self, home, token=None):
        """For whoever pushes to it: without Xet, which it does not have."""
        return {"HF_ENDPOINT": self.url, "HF_TOKEN": token or self.token or "hf_any",
                "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1",
                "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
                "HF_HUB_OFFLINE": "0", "no_proxy": "*"}
