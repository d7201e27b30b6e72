# SPDX-License-Identifier: MIT
"""A local server and the command against it, as a person at a shell has them."""
import contextlib
import fcntl
import http.server
import json
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tap import check, plan, skip  # noqa: F401, for those who import this

TNK = sys.argv[1]
# What the person who runs the tests has set would tell another story.
OURS = re.compile(r"TINKER_|TNK_(?!TEST)|HF_|.*_proxy$|.*_PROXY$|NO_COLOR$|FORCE_COLOR$|"
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
            length = int(self.headers.get("content-length", 0))
            if length > 1 << 28:
                self.close_connection = True
                return self.say(413)
            self.body = self.rfile.read(length)
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


def forward(server, change):
    """For scripted(): answers as another server does, in JSON, after change(path, document)."""
    def answer(handler):
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in ("host", "connection", "accept")}
        request = urllib.request.Request(server.url + handler.path, handler.body or None, headers, method=handler.command)
        try:
            with urllib.request.urlopen(request, timeout=60) as got:
                status, body, kind = got.status, got.read(), got.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            status, body, kind = error.code, error.read(), error.headers["Content-Type"]
        if kind == "application/json" and body:
            document = json.loads(body)
            change(handler.path, document)
            body = json.dumps(document).encode()
        handler.say(status, body, **({"Content_Type": kind} if kind else {}))

    return answer


class Canned:
    """A server that gives answers by rote and writes down what it was asked.

    `answers`: "GET training_runs" -> a body, a status, or a list of them of which
    the last one stays; a tuple is status, body, headers; a function gets the path
    with its query and gives one of these. None never answers.
    """

    def __init__(self, answers):
        self.answers = {"POST client/config": {"pjwt_auth_enabled": False}, **answers}
        self.seen = []

    def find(self, method, path):
        given = self.answers.get(f"{method} {path.partition('?')[0]}", 404)
        if isinstance(given, list):
            given = given.pop(0) if len(given) > 1 else given[0]
        if callable(given):
            given = given(path)
        if given is None or isinstance(given, tuple):
            return given
        return (given, {"detail": "canned"}, {}) if isinstance(given, int) else (200, given, {})

    def __enter__(self):
        canned = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def serve(self):
                n = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(n)
                path = self.path.removeprefix("/api/v1/")
                canned.seen.append((self.command + " " + path, body, dict(self.headers)))
                answer = canned.find(self.command, path)
                if answer is None:
                    canned.ending.wait(60)
                    self.close_connection = True
                    return
                status, said, headers = answer
                said = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = do_PUT = do_DELETE = serve

        self.ending = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.env = {"TINKER_BASE_URL": self.url, "TINKER_API_KEY": "tml-canary"}
        return self

    def __exit__(self, *what):
        self.ending.set()
        self.server.shutdown()
        self.server.server_close()

    def __call__(self, *args, **more):
        return tnk(*args, env={**self.env, **more.pop("env", {})}, **more)

    def asked(self, call):
        """How often, whatever the query."""
        return sum(seen[0].partition("?")[0] == call for seen in self.seen)


class NoTerminal(Exception):
    """This machine has none to give, as in a bare root of Debian."""


def open_terminal():
    """Both ends of a new one."""
    try:
        return pty.openpty()
    except OSError as error:
        raise NoTerminal from error


def try_all(cases):
    """Run them; one that comes to need a terminal where there is none is skipped
    from there on."""
    for case in cases:
        try:
            case()
        except NoTerminal:
            skip(case.__name__, "no terminals here (/dev/pts)")


class Terminal:
    """The command, or another one, with a terminal for its three files."""

    def __init__(self, *args, env=None, columns=80, command=TNK, cwd=None):
        self.master, slave = open_terminal()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [command, *map(str, args)], stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
            env={**CLEAN, "TERM": "xterm", **(env or {})}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.text = ""

    def read(self):
        """Some more of what it shows; False at its end."""
        ready, _, _ = select.select([self.master], [], [], 60)
        try:
            piece = os.read(self.master, 65536) if ready else b""
        except OSError:  # how the end of a terminal looks on Linux
            piece = b""
        self.text += piece.decode(errors="replace")
        return bool(piece)

    def until(self, words):
        while words not in self.text and self.read():
            pass
        check(words in self.text, f"the terminal shows {words!r}", self.text)

    def send(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """The exit status, once all is shown."""
        while self.read():
            pass
        status = self.process.wait(60)
        os.close(self.master)
        return status
