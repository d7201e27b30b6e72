# SPDX-License-Identifier: MIT
"""The command, as tnk local and tnk gateway before it, for tests in Python."""
import http.client
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

OURS = re.compile(r"TINKER_|TNK_(?!TEST)|OPENAI_|ANTHROPIC_|HF_|.*_proxy$|.*_PROXY$|SSL_CERT_FILE$|OTEL_")
CLEAN = {name: value for name, value in os.environ.items() if not OURS.match(name)}
SERVICE_KEY = "tml-canary-of-the-service"

# A template as models of the Hermes family have it.
CALLING = """{% if tools %}<|im_start|>system
{% for t in tools %}{{ t | tojson }}
{% endfor %}<|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


class Command:
    """A command that listens, as long as the with-block. `log` is a file for
    what it says on standard error, where that may be much."""

    def __init__(self, tnk, *args, env=None, log=None):
        self.line = [tnk, *map(str, args)]
        self.env = {**CLEAN, **(env or {})}
        self.log = log

    def __enter__(self):
        err = open(self.log, "w", encoding="utf-8") if self.log else subprocess.PIPE
        self.process = subprocess.Popen(self.line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=err, text=True, env=self.env)
        if self.log:
            err.close()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.line}: {self.errors()}")
        self.url = line.split()[-1]
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.status = self.process.wait(60)
        self.process.stdout.close()
        self.said = self.errors()

    def errors(self):
        """What it has said on standard error, until it has ended."""
        if self.log:
            return pathlib.Path(self.log).read_text()
        with self.process.stderr as file:
            return file.read()

    def kill(self):
        self.process.kill()
        self.process.wait(60)


def local(tnk, *args, log=None):
    key = () if "--stub" in args else ("--api-key", SERVICE_KEY)
    return Command(tnk, "local", "--port", "0", *key, *args, log=log)


def gateway(tnk, service, *args, log=None):
    return Command(tnk, "gateway", "--model", "tnk/byte-lm", "--port", "0", *args,
                   env={"TINKER_BASE_URL": service.url, "TINKER_API_KEY": SERVICE_KEY}, log=log)


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
        self.answer = answer = self.http.getresponse()
        read = answer.read().decode()
        self.type = answer.getheader("content-type", "")
        return answer.status, json.loads(read) if read and self.type == "application/json" else read

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
    return [json.loads(line[6:]) for line in text.split("\n")
            if line.startswith("data: ") and line != "data: [DONE]"]


def records(path):
    """The lines of a record, or of a sample log, that are whole. Texts in them
    may hold what Python takes for the end of a line as well."""
    return [json.loads(line) for line in pathlib.Path(path).read_bytes().split(b"\n")[:-1]]


def turns_of(path):
    return {r["turn"]: r for r in records(path) if r["type"] == "turn"}


def whole(turns, turn):
    """All ids of a turn, from those of a record by their number."""
    before = whole(turns, turns[turn["parent"]]) if turn.get("parent") else []
    return before + turn["prompt"] + turn["sampled"]


def floats(values):
    """As they are on the wire: what is drawn has single precision."""
    return struct.pack(f"{len(values)}f", *values)


def not_drawn(path, log):
    """The turns of a record that are not what the server drew, by its sample log:
    prompt, tokens, logprobs."""
    drawn = {(tuple(d["prompt"]), tuple(d["tokens"]), floats(d["logprobs"]))
             for d in records(log)}
    turns = turns_of(path)
    wrong = []
    for t in turns.values():
        ids = whole(turns, t)
        n = len(ids) - len(t["sampled"])
        if (tuple(ids[:n]), tuple(ids[n:]), floats(t["logprobs"])) not in drawn:
            wrong.append(t)
    return wrong


def not_gone_on(turns):
    """Those that go on from another one and do not begin with its very tokens."""
    children = [turn for turn in turns.values() if turn.get("parent")]
    return [turn for turn in children if not turn["prompt"] or
            whole(turns, turn)[:len(whole(turns, turns[turn["parent"]]))] !=
            whole(turns, turns[turn["parent"]])]
