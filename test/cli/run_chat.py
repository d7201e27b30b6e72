#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk chat against a scripted chat endpoint.

usage: run_chat.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import contextlib
import http.server
import json
import signal
import subprocess
import sys
import threading

from console import CLEAN, TNK, check, plan, tnk

PATH = "/oai/api/v1/chat/completions"


def delta(text=None, finish=None, **more):
    return {"choices": [{"index": 0, "delta": {**({"content": text} if text is not None else {}), **more},
                         "finish_reason": finish}]}


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Says the words of the last message one by one, in the other order."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, body, dict(self.headers)))
        words = body["messages"][-1]["content"].split()
        if words[0] == "silence":
            words = [""]
        if self.path == "/nobody":
            self.send_error(404)
            return
        if words[0] == "refuse":
            answer = json.dumps({"error": {"message": "not today"}}).encode()
            self.send_response(400)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.say(delta("", role="assistant"))
        for i, word in enumerate(reversed(words)):
            self.say(delta(" " * (i > 0) + word))
        if words[0] == "hang":
            self.server.hung.set()
            self.rfile.read(1)
            return
        if words[0] == "break":
            return
        self.say(delta(finish="stop"))
        self.wfile.write(b"data: [DONE]\n\n")

    def say(self, event):
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def endpoint():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.seen, server.hung, server.daemon_threads = [], threading.Event(), True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.env = {"TINKER_BASE_URL": f"http://127.0.0.1:{server.server_port}",
                  "TINKER_API_KEY": "tml-chat"}
    yield server
    server.shutdown()
    server.server_close()


def chat(server, *args, given=""):
    return tnk("chat", "--model", "m", *args, env=server.env, input=given)


def talks(server):
    got = chat(server, "--system", "Be brief.", "--max-tokens", 5, "--temperature", "0.5",
               given="one two\n\n  \nthree h\u00e9 four")
    check(got.returncode == 0 and got.stdout == "two one\nfour h\u00e9 three\n" and not got.stderr,
          "a line is a turn", got)
    path, body, headers = server.seen[-1]
    check(path == PATH and headers["Authorization"] == "Bearer tml-chat" and
          headers["Accept"] == "text/event-stream", "as it is sent", server.seen)
    check(body == {"model": "m", "stream": True, "max_tokens": 5, "temperature": 0.5, "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "one two"},
        {"role": "assistant", "content": "two one"},
        {"role": "user", "content": "three h\u00e9 four"}]}, "the conversation goes on", body)
    got = chat(server, "a b", given="never read\n")
    check(got.returncode == 0 and got.stdout == "b a\n", "one question", got)
    got = chat(server, "-", given="a\nb c\n")
    check(got.returncode == 0 and got.stdout == "c b a\n" and
          server.seen[-1][1]["messages"][0]["content"] == "a\nb c\n", "all of the input", got)
    got = chat(server, "--json", given="a b\nc\n")
    said = json.loads(got.stdout)
    check(said == {"model": "m", "finish_reason": "stop", "messages": [
        {"role": "user", "content": "a b"}, {"role": "assistant", "content": "b a"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "c"}]}, "in JSON", got)
    got = chat(server, "--path", "/v1/chat/completions", "x")
    check(got.stdout == "x\n" and server.seen[-1][0] == "/v1/chat/completions", "elsewhere", got)
    got = chat(server, given="")
    check(got.returncode == 0 and not got.stdout, "nothing to say", got)
    got = chat(server, given="silence\na\n")
    check(got.returncode == 0 and got.stdout == "a\n" and
          server.seen[-1][1]["messages"][1]["content"] == "", "an answer of nothing", got)


def fails(server):
    got = chat(server, "--path", "/nobody", "x")
    check(got.returncode == 4 and "--path" in got.stderr and "list" not in got.stderr,
          "nobody listens there", got)
    n = len(server.seen)
    got = chat(server, given="refuse\nnever\n")
    check(got.returncode == 1 and "not today" in got.stderr and not got.stdout and
          len(server.seen) == n + 1, "a refusal ends it", got)
    got = chat(server, given="break it\nnever\n")
    check(got.returncode == 5 and got.stdout == "it break\n" and "without its end" in got.stderr and
          "after 3 events" in got.stderr, "a stream that ends early", got)
    got = chat(server, "--json", given="break it\n")
    check(got.returncode == 5 and "messages" not in got.stdout, "in JSON too", got)
    got = chat(server, given="\udcff\n".encode("utf-8", "surrogateescape").decode("latin-1"))
    check(got.returncode == 0, "any text", got)
    got = subprocess.run([TNK, "chat", "-m", "m"], env={**CLEAN, **server.env}, input=b"\xff\n",
                         capture_output=True, timeout=60)
    check(got.returncode == 2 and b"UTF-8" in got.stderr, "what is no text", got)
    got = subprocess.run([TNK, "chat", "-m", "m"], env={**CLEAN, **server.env},
                         input=b"x" * 1100000, capture_output=True, timeout=60)
    check(got.returncode == 6 and b"1 MiB" in got.stderr, "a line that is too long", got)
    for args, words in (([], "--model"), (["--model", "m", "--path", "v1"], "--path"),
                        (["--model", "m", "--temperature", "x"], "0 to 100"),
                        (["--model", "m", "--max-tokens", "0"], "--max-tokens"),
                        (["--model", "m", "a", "b"], '"b"')):
        got = tnk("chat", *args, env=server.env)
        check(got.returncode == 2 and words in got.stderr, f"chat {' '.join(args)}", got)


def ended(server):
    run = subprocess.Popen([TNK, "chat", "-m", "m"], env={**CLEAN, **server.env},
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    run.stdin.write("hang on\n")
    run.stdin.flush()
    server.hung.wait(60)
    run.send_signal(signal.SIGINT)
    out, said = run.communicate(timeout=60)
    check(run.returncode == 130 and "interrupted" in said, "Ctrl-C in an answer", (out, said))
    run = subprocess.Popen([TNK, "chat", "-m", "m"], env={**CLEAN, **server.env},
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    run.stdin.write("a b\n")
    run.stdin.flush()
    check(run.stdout.readline() == "b a\n", "an answer comes while the input is open")
    run.send_signal(signal.SIGINT)
    check(run.wait(60) == 130, "Ctrl-C between two turns", run.returncode)
    run.communicate()


with endpoint() as where:
    talks(where)
    fails(where)
    ended(where)
plan()
