"""A local server and the command against it, as a person at a shell has them."""
import contextlib
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tap import check, plan  # noqa: F401, for those who import this

TNK = sys.argv[1]
# What the person who runs the tests has set would tell another story.
OURS = re.compile(r"TINKER_|TNK_(?!TEST)|.*_proxy$|.*_PROXY$|NO_COLOR$|FORCE_COLOR$|"
                  r"COLUMNS$|SSL_CERT_FILE$")
CLEAN = {name: value for name, value in os.environ.items() if not OURS.match(name)}


def tnk(*args, env=None, stdin=subprocess.DEVNULL, **more):
    """Run the command; its output is text."""
    return subprocess.run([TNK, *map(str, args)], env={**CLEAN, **(env or {})},
                          stdin=None if "input" in more else stdin,
                          capture_output=True, text=True, timeout=120, **more)


class Local:
    """tnk local, as long as the with-block."""

    def __init__(self, *args):
        self.args = args

    def __enter__(self):
        self.process = subprocess.Popen(
            [TNK, "local", "--port", "0", "--exit-with-stdin", *self.args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=CLEAN)
        self.url = self.process.stdout.readline().split()[-1]
        self.env = {"TINKER_BASE_URL": self.url, "TINKER_API_KEY": "tml-local"}
        return self

    def __exit__(self, *what):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        self.seen = self.process.stderr.read().splitlines()
        self.process.stderr.close()

    def __call__(self, *args, **more):
        return tnk(*args, env={**self.env, **more.pop("env", {})}, **more)

    def json(self, *args, **more):
        """The document of a command that must succeed."""
        got = self(*args, "--json", **more)
        check(got.returncode == 0, f"{' '.join(map(str, args))} --json", got)
        return json.loads(got.stdout)

    def post(self, path, body):
        request = urllib.request.Request(self.url + "/api/v1/" + path,
                                         json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def result(self, path, body):
        """What a call with a future comes to."""
        asked = self.post(path, body)
        while True:
            got = self.post("retrieve_future", {"request_id": asked["request_id"]})
            if got.get("type") != "try_again":
                return got

    def session(self, **body):
        return self.post("create_session", {"tags": [], "sdk_version": "1", **body})["session_id"]

    def model(self, session, rank=2, **more):
        """A new model; its id."""
        self.n = getattr(self, "n", 0) + 1
        made = self.result("create_model", {
            "session_id": session, "model_seq_id": self.n, "base_model": "tnk/byte-lm",
            "lora_config": {"rank": rank}, **more})
        return made["model_id"]

    def save(self, model, name, seq_id, call="save_weights", **more):
        return self.result(call, {"model_id": model, "path": name, "seq_id": seq_id,
                                  **more})["path"]


@contextlib.contextmanager
def scripted(answer):
    """A server whose answers `answer(handler)` gives; yields its URL and what was asked."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self):
            self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
            seen.append((self.command, self.path, dict(self.headers)))
            answer(self)

        do_GET = do_POST = do_PUT = do_DELETE = do

        def say(self, status, body=b"{}", **headers):
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *what):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
