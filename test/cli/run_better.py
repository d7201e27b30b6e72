#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a better command line does: each row of the protocol's section 11.10 that
is about all commands, by its name, against a server that a test scripts.

usage: run_better.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import http.server
import json
import os
import select
import signal
import subprocess
import threading
import time

from console import CLEAN, TNK, check, open_terminal, plan, tnk, try_all

PATH = "tinker://r:1/weights/a"
CHECKPOINT = "training_runs/r:1/checkpoints/weights/a"


def run_of(i, **more):
    return {"training_run_id": f"r:{i}", "base_model": "m", "model_owner": "o", "is_lora": True, "lora_rank": 2,
            "last_request_time": "2026-01-02T03:04:05Z", **more}


class Scripted:
    """A server, as long as the with-block. `answers`: from "METHOD path" to a
    list of (status, body), the last of which stays, or to a function of the
    query; `seen`: what was asked, but for the configuration."""

    def __init__(self, answers):
        self.answers = {name: list(a) if isinstance(a, list) else a for name, a in answers.items()}
        self.seen = []

    def serve(self, handler):
        handler.rfile.read(int(handler.headers.get("content-length") or 0))
        path, _, query = handler.path.removeprefix("/api/v1/").partition("?")
        name = f"{handler.command} {path}"
        status, body = 404, {"detail": "Not Found"}
        if path == "client/config":
            status, body = 200, {}
        elif path != "client/dynamic_config":
            self.seen.append(name)
            answer = self.answers.get(name)
            if callable(answer):
                status, body = 200, answer(dict(p.split("=") for p in query.split("&")))
            elif answer:
                status, body = answer.pop(0) if len(answer) > 1 else answer[0]
        if status is None:  # never
            self.over.wait(60)
            return
        text = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def __enter__(self):
        scripted = self
        self.over = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                scripted.serve(self)

            do_GET = do_POST = do_PUT = do_DELETE = serve

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.env = {"TINKER_BASE_URL": f"http://127.0.0.1:{self.server.server_port}",
                    "TINKER_API_KEY": "tml-scripted"}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_what):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def __call__(self, *args, **more):
        return tnk(*args, env=self.env, **more)


def error_of(got, what):
    """The one document that a failure is, and nothing else on the output."""
    try:
        return json.loads(got.stdout)["error"]
    except (ValueError, KeyError):
        check(False, what, got)


# ---- Streams, prompts, exit status ------------------------------------------------


def P11_10_streams():
    what = "P11_10_streams: "
    runs = {"training_runs": [run_of(1)], "cursor": {"offset": 0, "limit": 20, "total_count": 1}}
    with Scripted({"GET training_runs": [(200, runs)], "DELETE " + CHECKPOINT: [(200, {})]}) as server:
        got = server("run", "list")
        check(got.returncode == 0 and "r:1" in got.stdout and got.stderr == "", what + "a result", got)
        got = server("checkpoint", "delete", PATH, "--yes")
        check(got.returncode == 0 and "\r" not in got.stdout, what + "no progress on the output", got)
        got = server("checkpoint", "delete", PATH, "--yes", "--json")
        check(json.loads(got.stdout)["deleted_count"] == 1, what + "one document", got)
        got = server("run", "info", "r:2")
        check(got.returncode != 0 and got.stdout == "" and got.stderr, what + "an error is none", got)
        for args in ["run", "info", "r:2"], ["run", "infos"], ["run", "info"], ["run", "list", "--limit", "x"]:
            got = server(*args, "--json")
            check(got.returncode != 0 and error_of(got, what)["message"],
                  what + f"{' '.join(args)} --json is a document too", got)


def at_terminal(server, args, answer):
    """The command at a terminal, where `answer` is typed once it asks; what it
    wrote there, what to its output, which is a pipe, and its status."""
    master, slave = open_terminal()
    process = subprocess.Popen([TNK, *args], stdin=slave, stderr=slave, stdout=subprocess.PIPE, text=True,
                               env={**CLEAN, **server.env}, start_new_session=True)
    os.close(slave)
    shown = b""
    while select.select([master], [], [], 30)[0]:
        try:
            shown += os.read(master, 4096)
        except OSError:
            break
        if answer and b"[y/N]" in shown:
            os.write(master, answer)
            answer = b""
    out = process.communicate(timeout=60)[0]
    os.close(master)
    return shown.decode(), out, process.returncode


def P11_10_prompts():
    what = "P11_10_prompts: "
    delete = ["checkpoint", "delete", PATH]
    with Scripted({"DELETE " + CHECKPOINT: [(200, {})]}) as server:
        for more in [], ["--json"]:
            got = server(*delete, *more)
            check(got.returncode == 2 and "yes" in got.stderr + got.stdout, what + "nobody to ask", got)
        check("DELETE " + CHECKPOINT not in server.seen, what + "nothing is deleted", server.seen)
        shown, out, status = at_terminal(server, delete, b"n\n")
        check("[y/N]" in shown and out == "", what + "the question is no output", (shown, out, status))
        check("DELETE " + CHECKPOINT not in server.seen, what + "no is no", server.seen)
        shown, out, status = at_terminal(server, delete, b"y\n")
        check(status == 0 and server.seen == ["DELETE " + CHECKPOINT], what + "yes is yes", (shown, out, server.seen))


def P11_10_exit_status():
    what = "P11_10_exit_status: "
    with Scripted({"DELETE " + CHECKPOINT: [(200, {})], "GET training_runs/denied": [(401, {"detail": "no"})],
                   "GET training_runs/slow": [(None, None)]}) as server:
        got = server("checkpoint", "delete", PATH, PATH + "-none", "-y")
        check(got.returncode == 1, what + "a part failed", got)
        for args in (["run", "list", "--columns", "nonsense"], ["run"], ["checkpoint", "set-ttl", PATH],
                     ["run", "list", "--nonsense"]):
            got = server(*args)
            check(got.returncode == 2, what + "usage: " + " ".join(args), got)
        seen = {server("run", "info", "denied").returncode, server("run", "info", "none").returncode,
                tnk("run", "info", "r", "--retries", "0",
                    env={**server.env, "TINKER_BASE_URL": "http://127.0.0.1:1"}).returncode}
        check(len(seen) == 3 and not seen & {0, 1, 2}, what + "keys, ids and networks can be told apart", seen)
        process = subprocess.Popen([TNK, "run", "info", "slow"], env={**CLEAN, **server.env}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while "GET training_runs/slow" not in server.seen:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        got = process.communicate(timeout=60)
        check(process.returncode == 130 and got[0] == "", what + "Ctrl-C", (process.returncode, got))


# ---- Lists, time --------------------------------------------------------------------


def P11_10_paging():
    what = "P11_10_paging: "
    long = "a-model-with-a-name-that-no-terminal-would-show-in-one-line/" + "x" * 100

    def page(query):
        """Never more than three a page, whatever is asked for."""
        offset, limit = int(query["offset"]), min(int(query["limit"]), 3)
        return {"training_runs": [run_of(i, base_model=long) for i in range(offset, min(offset + limit, 10))],
                "cursor": {"offset": offset, "limit": limit, "total_count": 10}}

    with Scripted({"GET training_runs": page}) as server:
        said = json.loads(server("run", "list", "--limit", "0", "--json").stdout)
        check([r["training_run_id"] for r in said["runs"]] == [f"r:{i}" for i in range(10)] and
              said["total"] == 10 and said["truncated"] is False, what + "pages are walked to the end", said)
        said = json.loads(server("run", "list", "--limit", "4", "--json").stdout)
        check(len(said["runs"]) == 4 and said["total"] == 10 and said["truncated"] is True,
              what + "a list that was cut says so", said)
        got = server("run", "list", "--limit", "4")
        check(got.stdout.count(long) == 4, what + "nothing is wrapped or cut", got)
        check("10" in got.stderr + got.stdout, what + "in a table too", got)


def P11_10_time():
    what = "P11_10_time: "
    with Scripted({"GET training_runs/r": [(503, {}), (200, run_of(1))], "GET training_runs/broke": [(402, {})],
                   "GET training_runs/slow": [(None, None)],
                   "POST " + CHECKPOINT + "/publish": [(409, {})],
                   "DELETE " + CHECKPOINT + "/publish": [(409, {})]}) as server:
        got = server("run", "info", "r", "--verbose")
        check(got.returncode == 0 and "503" in got.stderr, what + "repeats can be seen", got)
        got = server("run", "info", "broke")
        check(got.returncode != 0 and server.seen.count("GET training_runs/broke") == 1, what + "402 at once", got)
        got = server("run", "info", "slow", "--timeout", "1")
        check(got.returncode == 5 and "timeout" in got.stderr, what + "--timeout", got)
        for word in "publish", "unpublish":
            got = server("checkpoint", word, PATH)
            check(got.returncode == 0, what + f"{word} of what is so already", got)


# ---- Input, start-up, cells -----------------------------------------------------------


def P11_10_input():
    what = "P11_10_input: "
    with Scripted({}) as server:
        for args in (["run", "info", "a?b"], ["run", "info", ".."], ["run", "info", ""],
                     ["checkpoint", "publish", "r/weights/a"], ["checkpoint", "info", "tinker://r/weights/.."],
                     ["checkpoint", "publish", "tinker://r/nonsense/a"],
                     ["checkpoint", "delete", "-y", "tinker://r/weights/a#b"],
                     ["checkpoint", "set-ttl", PATH, "--ttl", "3599"], ["checkpoint", "set-ttl", PATH, "--ttl", "0"],
                     ["checkpoint", "set-ttl", PATH, "--ttl", "999999999999"],
                     ["checkpoint", "delete", "-y", "--run-id", "r", "--before", "yesterday"],
                     ["checkpoint", "delete", "-y", "--run-id", "r", "--type", "nonsense"]):
            got = server(*args)
            check(got.returncode == 2 and got.stderr, what + " ".join(args), got)
        check(server.seen == [], what + "nothing of that is sent", server.seen)
    # Times without a zone are UTC, wherever the person is.
    listed = {"checkpoints": [{"checkpoint_id": "weights/a", "checkpoint_type": "training", "tinker_path": PATH,
                               "time": "2026-01-02T00:30:00Z"}], "cursor": None}
    answers = {"GET training_runs/r:1/checkpoints": [(200, listed)], "DELETE " + CHECKPOINT: [(200, {})]}
    for before, n in ("2026-01-02T00:30:00", 0), ("2026-01-02T00:30:01", 1), ("2026-01-02T01:30:01+01:00", 1), \
            ("2026-01-02T01:30:00+01:00", 0):
        with Scripted(answers) as server:
            got = tnk("checkpoint", "delete", "-y", "--run-id", "r:1", "--before", before, "--json",
                      env={**server.env, "TZ": "America/New_York"})
            check(json.loads(got.stdout)["deleted_count"] == n, what + f"--before {before}", got)


def P11_10_start_up():
    what = "P11_10_start_up: "
    with Scripted({"GET training_runs/r:1": [(200, run_of(1))]}) as server:
        got = server("run", "info", "r:1")
        check(got.returncode == 0 and server.seen == ["GET training_runs/r:1"],
              what + "no session, no token that nobody wants", server.seen)
        for args in ["version"], ["run", "--help"], ["run", "info"]:
            n = len(server.seen)
            server(*args)
            check(len(server.seen) == n, what + " ".join(args) + " asks nobody", server.seen)


def P11_10_cells():
    what = "P11_10_cells: "
    nasty = "[bold]x[/bold] [/] \x1b[31mred\x07 a\nb\u202eleft"
    with Scripted({"GET training_runs/r:1": [(200, run_of(1, user_metadata={"key": nasty}))]}) as server:
        got = server("run", "info", "r:1")
        check(got.returncode == 0 and "[bold]x[/bold] [/]" in got.stdout, what + "texts are printed literally", got)
        check(not any(c in got.stdout for c in "\x1b\x07\u202e") and "\na" not in got.stdout and
              "\nb" not in got.stdout, what + "control characters do nothing", got)
        got = server("run", "info", "r:1", "--json")
        check(json.loads(got.stdout)["user_metadata"]["key"] == nasty and "\x1b" not in got.stdout,
              what + "in JSON they are what they were", got)


try_all((P11_10_streams, P11_10_prompts, P11_10_exit_status, P11_10_paging, P11_10_time, P11_10_input,
         P11_10_start_up, P11_10_cells))
plan()
