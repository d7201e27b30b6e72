"""The command, as tnk local and tnk gateway before it, for tests in Python."""
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

OURS = re.compile(r"TINKER_|TNK_(?!TEST)|OPENAI_|ANTHROPIC_|HF_|.*_proxy$|.*_PROXY$|SSL_CERT_FILE$")
CLEAN = {name: value for name, value in os.environ.items() if not OURS.match(name)}
SERVICE_KEY = "tml-canary-of-the-service"


class Command:
    """A command that listens, as long as the with-block."""

    def __init__(self, tnk, *args, env=None):
        self.line = [tnk, *map(str, args)]
        self.env = {**CLEAN, **(env or {})}

    def __enter__(self):
        self.process = subprocess.Popen(self.line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=self.env)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.line}: {self.process.stderr.read()}")
        self.url = line.split()[-1]
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.status = self.process.wait(60)
        self.process.stdout.close()
        self.said = self.process.stderr.read()
        self.process.stderr.close()

    def kill(self):
        self.process.kill()
        self.process.wait(60)


def local(tnk, *args):
    key = () if "--stub" in args else ("--api-key", SERVICE_KEY)
    return Command(tnk, "local", "--port", "0", *key, *args)


def gateway(tnk, service, *args):
    return Command(tnk, "gateway", "--model", "tnk/byte-lm", "--port", "0", *args,
                   env={"TINKER_BASE_URL": service.url, "TINKER_API_KEY": SERVICE_KEY})


class Client:
    """Requests over one connection."""

    def __init__(self, url, **headers):
        self.http = http.client.HTTPConnection(url.split("/")[2], timeout=60)
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def ask(self, method, path, body=None, **headers):
        """Returns the status, and the body: parsed if it is JSON."""
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        self.http.request(method, path, data, {
            **self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}})
        answer = self.http.getresponse()
        read = answer.read().decode()
        self.type = answer.getheader("content-type", "")
        return answer.status, json.loads(read) if self.type == "application/json" else read

    def post(self, path, body, **headers):
        return self.ask("POST", path, body, **headers)

    def chat(self, messages, path="/v1/chat/completions", headers=None, **more):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return self.post(path, {"model": "m", "max_tokens": 8, "messages": messages, **more},
                         **(headers or {}))

    def close(self):
        self.http.close()


def events(text):
    """The data of the events of a stream."""
    return [json.loads(line[6:]) for line in text.splitlines()
            if line.startswith("data: ") and line != "data: [DONE]"]


def records(path):
    """The lines of a record that are whole."""
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines(True)
            if line.endswith("\n")]


def whole(turns, turn):
    """All ids of a turn, from those of a record by their number."""
    before = whole(turns, turns[turn["parent"]]) if turn.get("parent") else []
    return before + turn["prompt"] + turn["sampled"]
