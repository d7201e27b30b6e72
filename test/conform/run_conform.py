#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tnk conform` against `tnk local`: what it says of each of the three kinds of
server, and that it sees each fault.

usage: run_conform.py TNK_COMMAND [--write]

The reports are compared with those in expected/; --write puts the present ones
there. Lengths of time are left out, as they differ. Output is TAP, see
test/support/tap.py.
"""
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from tap import check, plan

TNK = sys.argv[1]
PEM = str(HERE.parent / "cli" / "localhost.pem")
WRITE = "--write" in sys.argv
ENV = {**os.environ, "no_proxy": "*", "TINKER_API_KEY": "tml-conform"}
ENV.pop("TINKER_BASE_URL", None)


class Server:
    def __init__(self, *args, stderr=None):
        self.process = subprocess.Popen(
            [TNK, "local", "--hold-ms", "300", "--exit-with-stdin", *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env=ENV)
        self.url = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


def conform(*args, **env):
    return subprocess.run([TNK, "conform", *args], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300,
                          env={**ENV, **env})


def look(got, *secrets):
    for secret in secrets:
        if secret in got.stdout + got.stderr:
            check(False, f"{secret} is not told", got)


def report(url, *args, **env):
    got = conform(url, "--json", *args, **env)
    look(got, {**ENV, **env}["TINKER_API_KEY"])
    try:
        return got.returncode, json.loads(got.stdout)
    except json.JSONDecodeError:
        check(False, "--json is one document", got)


def lines_of(document):
    for rule in document["rules"]:
        detail = re.sub(r"\b\d+(\.\d+)? (ms|s|min)\b", r"N \2", rule["detail"])
        yield f"{rule['id']}\t{rule['verdict']}\t{detail}\n"


def differences(lines, expected):
    """What a report says otherwise."""
    got, want = ({line.split("\t")[0]: line for line in some} for some in (lines, expected))
    for rule in sorted(got.keys() | want.keys()):
        new, old = got.get(rule, "nothing\n"), want.get(rule, "nothing\n")
        if new != old:
            yield f"{new.strip()} instead of {old}"


def modes():
    for mode, status in (("buffered", 0), ("lenient", 0), ("strict", 0)):
        # Where each request gets a result, a poll is held until it is there, however long
        # that takes. What a server says before is in the report.
        hold = () if mode == "buffered" else ("--hold-ms", "3600000")
        with Server("--sequence", mode, *hold) as server:
            code, document = report(server.url, "--spend")
        path = HERE / "expected" / f"{mode}.txt"
        lines = list(lines_of(document))
        if WRITE:
            path.write_text("".join(lines))
        wrong = list(differences(lines, path.read_text().splitlines(keepends=True)))
        check(not wrong, f"the report of {mode} is the expected one", "".join(wrong))
        check(code == status, f"its exit status is {status}", code)
        check(document["left"] == [], "nothing is left behind", document["left"])


def versions():
    """Over HTTP/2, and over TLS, all is the same; as TLS is tried at another
    place, only what differs between them is looked at."""
    with Server() as server:
        code, document = report(server.url, "--spend", "--rules",
                                "http-*,heartbeat,poll-*,seq-*,pass-*,all-*",
                                TNK_HTTP_VERSION="2-prior-knowledge")
    check(code == 0, "over HTTP/2", document)
    with Server("--tls-cert", PEM, "--tls-key", PEM) as server:
        code, document = report(server.url, "--spend", "--rules",
                                "http-*,limit-*,heartbeat,poll-*,all-*", SSL_CERT_FILE=PEM)
    check(code == 0, "over TLS", document)
    http2 = [r for r in document["rules"] if r["id"] == "http-2"][0]
    check(http2["verdict"] == "not_offered" or "ALPN" in http2["detail"],
          "TLS chooses the version", http2)


def free_of_charge():
    with Server() as server:
        code, document = report(server.url)
    check(code == 0, "without --spend all is well too", document)
    sent = document["sent"]
    check(not any(sent[k] for k in ("models", "passes", "steps", "saves", "samples")),
          "without --spend nothing is trained, sampled or saved", sent)
    check(all(r["verdict"] == "skipped" for r in document["rules"] if r["needs"] == "spend"),
          "what costs is skipped then")


# What goes wrong, the rule that must see it, and a word of what it says then.
FAULTS = [
    ("reset/healthz", "healthz", ""),
    ("reset/healthz:connection", "healthz", ""),
    ("reset/healthz:refused", "healthz", ""),
    ("goaway/healthz", "healthz", ""),
    ("goaway/healthz:after", "http-keep-alive", "closed after 1"),
    ("drop_after_commit/session_heartbeat", "heartbeat", ""),
    ("drop_after_commit/session_heartbeat:connection", "heartbeat", ""),
    ("cut_body/healthz", "healthz", ""),
    ("cut_body/healthz:7", "healthz", ""),
    ("slow_body/get_server_capabilities:150", "http-speed", "took"),
    ("400/session_heartbeat", "heartbeat", "400"),
    ("400/session_heartbeat", "all-errors", "400 to session_heartbeat"),
    ("402/session_heartbeat", "heartbeat", "402"),
    ("408/session_heartbeat", "heartbeat", "408"),
    ("408/session_heartbeat:after", "heartbeat", "408"),
    ("409/session_heartbeat", "heartbeat", "409"),
    ("409/optim_step:expected=+1", "seq-order", "409"),
    ("429/session_heartbeat", "heartbeat", "429"),
    ("429/session_heartbeat:ms=20", "all-waits", "retry-after-ms"),
    ("429/session_heartbeat:s=1", "all-waits", "in seconds"),
    ("429/session_heartbeat:date=1", "all-waits", "as a date"),
    ("429/session_heartbeat:rfc850=1", "all-waits", "RFC 850"),
    ("429/session_heartbeat:asctime=1", "all-waits", "asctime"),
    ("429/session_heartbeat:s=900", "all-waits", "exceed a minute"),
    ("500/session_heartbeat", "heartbeat", "500"),
    ("500/session_heartbeat:html", "heartbeat", "500"),
    ("502/session_heartbeat:html", "heartbeat", "502"),
    ("502/session_heartbeat:after", "heartbeat", "502"),
    ("503/session_heartbeat", "all-failures", "503 to session_heartbeat"),
    ("503/session_heartbeat:after:html", "heartbeat", "503"),
    ("504/session_heartbeat:html", "heartbeat", "504"),
    ("504/session_heartbeat:after", "heartbeat", "504"),
    ("try_again/retrieve_future@2-:active", "poll-result", "no result"),
    ("try_again/retrieve_future@2-:paused_capacity", "poll-result", "no result"),
    ("try_again/retrieve_future@2-:paused_rate_limit", "poll-result", "no result"),
    ("try_again/retrieve_future:strange", "all-states", "strange"),
    ("extra_answer/healthz", "http-one-answer", "2 responses"),
    ("404/retrieve_future@2-", "poll-result", "404"),
    ("410/retrieve_future@2-", "poll-result", "410"),
    ("bad_json/session_heartbeat", "heartbeat", ""),
    ("bad_json/session_heartbeat", "all-readable", "cannot be parsed"),
    ("bad_proto/retrieve_future@2-", "pass-result", ""),
    ("wrong_type/session_heartbeat", "all-types", "session_heartbeat"),
    ("other_answer/healthz", "healthz", ""),
    ("duplicate_header/healthz:content-type", "http-headers-once", "content-type"),
    ("duplicate_header/healthz:content-length", "http-headers-once", "content-length"),
    ("duplicate_header/healthz:retry-after", "http-headers-once", "retry-after"),
    ("duplicate_header/healthz:date", "http-headers-once", "date"),
    ("oversized/healthz", "healthz", ""),
    ("short_body/healthz", "healthz", ""),
    ("short_body/files", "files-range", "2 bytes"),
    ("no_range/files", "files-range", "whole file"),
    ("other_range/files", "files-range", "another part"),
    ("redirect/files:origin", "files-range", "to http:"),
    ("redirect/files:same", "files-range", "to http:"),
    ("redirect/files:http", "files-range", "to http:"),
    ("redirect/files:file", "files-range", "to file:"),
    ("other_names/external_weights_urls:parent", "links-names", ".."),
    ("other_names/external_weights_urls:absolute", "links-names", "/"),
    ("other_names/external_weights_urls:empty", "links-names", '""'),
    ("other_names/external_weights_urls:dot", "links-names", '"."'),
    ("other_names/external_weights_urls:long", "links-names", "000"),
    ("other_names/external_weights_urls@2-:other", "links-names", "others"),
    ("pending/trace_export", "trace", "pending"),
]
# Over HTTP/2 they are of one stream, and have ways of their own to end it.
FAULTS_HTTP2 = [
    ("reset/healthz", "healthz", ""),
    ("reset/healthz:refused", "healthz", ""),
    ("reset/healthz:calm", "healthz", ""),
    ("reset/healthz:cancel", "healthz", ""),
    ("reset/healthz:protocol", "healthz", ""),
    ("reset/healthz:connection", "healthz", ""),
    ("goaway/healthz", "healthz", ""),
    ("drop_after_commit/session_heartbeat", "heartbeat", ""),
    ("cut_body/healthz:7", "healthz", ""),
    ("oversized/healthz", "healthz", ""),
    ("503/session_heartbeat", "heartbeat", "503"),
]
# How each of these rules tells that something is amiss.
SEEN = {"differs", "differs_allowed"}
# A fault that only shows how it looks, or that hides what is asked for.
ALSO = {"all-waits": {"holds"}, "402/session_heartbeat": {"skipped"}}


def fault(text, rule, word, **env):
    # The rules that judge all answers need one that makes the faulty request.
    rules = rule if not rule.startswith("all-") else \
        f"{'poll-result' if 'retrieve' in text else 'heartbeat'},{rule}"
    # Only these wait until a limit of the command is over. It must be enough for a model.
    limits = ("--result-timeout", "4") if text.startswith("try_again") else ()
    with Server("--faults", text) as server:
        code, document = report(server.url, "--spend", "--rules", rules, *limits, **env)
    found = [r for r in document["rules"] if r["id"] == rule]
    seen = SEEN | ALSO.get(rule, set()) | ALSO.get(text, set())
    check(len(found) == 1 and found[0]["verdict"] in seen and word in found[0]["detail"],
          f"{text} is seen by {rule}", (code, document))
    unmet = [r for r in document["rules"] if r["detail"].startswith("no model")]
    check(code == (1 if unmet or any(r["verdict"] == "differs" for r in document["rules"]) else 0),
          "the exit status says so", (code, document))


def unmet():
    """What a rule stands on is missing: no success either."""
    with Server("--faults", "404/retrieve_future") as server:
        code, document = report(server.url, "--spend", "--rules", "poll-result")
    check(code == 1 and document["rules"][0]["verdict"] == "skipped" and
          document["rules"][0]["detail"].startswith("no model"),
          "a rule that could not be tried is no success", (code, document))


def faults():
    for text, rule, word in FAULTS:
        fault(text, rule, word)
    if "without HTTP/2" in subprocess.run([TNK, "version"], capture_output=True, text=True,
                                          timeout=60).stdout:
        return
    for text, rule, word in FAULTS_HTTP2:
        fault(text, rule, word, TNK_HTTP_VERSION="2-prior-knowledge")


def command_line():
    got = conform("--help")
    check(got.returncode == 0 and "usage: tnk conform" in got.stdout, "--help", got)
    check(all(len(line) <= 80 for line in got.stdout.splitlines()),
          "the help fits 80 columns", got)
    got = conform("--list")
    check(got.returncode == 0 and "seq-gap" in got.stdout, "--list", got)
    n = len(re.findall(r"^  \S+ +(?:free|spend) ", got.stdout, re.M))
    check(n >= 100, "there are a hundred rules and more", n)
    got = conform("--list", "--json", "--rules", "seq-gap,http-*")
    listed = [rule["id"] for rule in json.loads(got.stdout)["rules"]]
    check("seq-gap" in listed and "http-2" in listed and "seq-order" not in listed,
          "--list --json, of some", got)
    for args, words in ((["--nonsense"], "--nonsense"),
                        (["--answer-timeout", "x"], '"x"'),
                        (["--answer-timeout", "0"], '"0"'),
                        (["--rules"], "needs a value"),
                        (["--json=1"], "takes no value"),
                        (["--rules", "no-such", "http://127.0.0.1:1"], '"no-such"'),
                        (["http://a", "http://b"], "http://b"),
                        (["ftp://127.0.0.1"], "http")):
        got = conform(*args)
        check(got.returncode == 2 and words in got.stderr and not got.stdout,
              f"conform {' '.join(args)} is refused", got)
    got = conform("http://127.0.0.1:1", TINKER_API_KEY="", HOME="/nonexistent")
    check(got.returncode == 3 and "key" in got.stderr, "without a key", got)


def unreachable():
    code, document = report("http://127.0.0.1:1")
    check(code == 5 and document["error"]["exit_status"] == 5 and
          list(document) == ["error"], "nobody listens", (code, document))
    with Server("--faults", "refuse") as server:
        code, document = report(server.url)
    check(code == 5 and "error" in document, "connections are refused", (code, document))
    with Server("--faults", "refuse@4-", "--max-connections", "64") as server:
        code, document = report(server.url, "--rules", "limit-connections")
    check(document["rules"][0]["verdict"] in SEEN, "further connections are refused", document)


def keys():
    with Server("--api-key", "tml-conform") as server:
        code, document = report(server.url, "--rules", "key-*")
        check(code == 0 and [r["verdict"] for r in document["rules"]] == ["holds"] * 2,
              "a server that asks for a key", document)
        code, document = report(server.url, TINKER_API_KEY="tml-other")
        check(code == 3 and "error" in document, "the key is refused", (code, document))
    with Server("--api-key", "tml-conform", "--tokens", "60") as server:
        code, document = report(server.url, "--rules", "token*,heartbeat")
        check(code == 0 and [r["verdict"] for r in document["rules"]] == ["holds"] * 3,
              "a server that asks for tokens", document)
        code, document = report(server.url)
        check(code == 0, "and all that costs nothing", document)


def interrupted():
    # The rule waits for a result that never comes.
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        interrupt(number, status)


def interrupt(number, status):
    with Server("--verbose", "--faults", "try_again/retrieve_future:active", stderr=subprocess.PIPE) as server, \
            server.process.stderr as requests:
        process = subprocess.Popen(
            [TNK, "conform", server.url, "--json", "--spend", "--rules", "poll-result"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
        while "/retrieve_future " not in requests.readline():
            pass
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    document = json.loads(out)
    check(process.returncode == status and document["exit"] == status,
          "an interrupted run tidies up and says so", (process.returncode, out, err))


def hostile():
    """Refused again and again, with our own words: it ends well, and tells no
    secret."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536

        def answer(self):
            length = int(self.headers.get("content-length") or 0)
            self.close_connection = length > 65536
            if not self.close_connection:
                self.rfile.read(length)
            sent = "".join(f"\\u{ord(c):04x}" if i % 2 else c
                           for i, c in enumerate(self.headers["X-API-Key"] or ""))
            body = json.dumps({"detail": f"{dict(self.headers)}"})[:-1] + f', "type": "{sent}"' + "}"
            self.send_response(500)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *_):
            pass

    class Many(http.server.ThreadingHTTPServer):
        request_queue_size = 128

        def handle_error(self, *_):
            pass

    server = Many(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    code, document = report(url, "--spend")
    check(code == 1 and len(document["rules"]) > 200, "a server that refuses all", document)
    got = conform(url, "--spend", CLOUDFLARE_ACCESS_CLIENT_ID="an-id",
                  CLOUDFLARE_ACCESS_CLIENT_SECRET="a-secret-of-another")
    look(got, ENV["TINKER_API_KEY"], "a-secret-of-another")
    check(got.returncode == 1, "the table tells no key", got)
    server.shutdown()
    server.server_close()


class Proxy:
    """In front of a server. With `reuse` it drops every third request of a kept
    connection without an answer, as a server does that has closed the connection
    after an error without saying so; without it, each answer ends its connection.
    Calls of `lacks` are answered with 404, as unknown ones are."""

    def __init__(self, url, reuse, lacks=()):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536
            n = 0

            def forward(self):
                self.n += 1
                if reuse and self.n % 3 == 0:
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.path.rsplit("/", 1)[-1] in lacks:
                    status, kind, data = 404, "application/json", b'{"detail":"Not Found"}'
                else:
                    status, kind, data = self.ask(body)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                if not reuse:
                    self.send_header("Connection", "close")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def ask(self, body):
                there = http.client.HTTPConnection(url.split("/")[-1], timeout=60)
                headers = {k: v for k, v in self.headers.items()
                           if k.lower() not in ("connection", "host", "accept-encoding")}
                there.request(self.command, self.path, body or None, headers)
                got = there.getresponse()
                answer = got.status, got.headers.get("content-type") or "", got.read()
                there.close()
                return answer

            do_GET = do_POST = do_PUT = do_DELETE = forward

            def log_message(self, *_):
                pass

        class Many(http.server.ThreadingHTTPServer):
            request_queue_size = 128
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Many(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


# Those about connections themselves differ with them.
OF_THE_PROTOCOL = ("config*,session*,heartbeat*,finish*,capabilities,seq-*,poll-*,model-*,pass-*,"
                   "step*,weights-*,sampler-*,sample-*,list-*,run-*")


def reused_connections():
    """Verdicts do not depend on whether connections are kept."""
    got = []
    for reuse in (False, True):
        with Server() as server, Proxy(server.url, reuse) as proxy:
            _, document = report(proxy.url, "--spend", "--rules", OF_THE_PROTOCOL)
        got.append([(rule["id"], rule["verdict"]) for rule in document["rules"]])
    check(len(got[0]) > 100 and got[0] == got[1],
          "closed connections change no verdict", sorted(set(got[0]) ^ set(got[1])))


def models_that_stay():
    """Where models cannot be unloaded few are left, and the verdicts are the same."""
    got = []
    for lacks in ((), ("unload_model",)):
        with Server() as server, Proxy(server.url, False, lacks) as proxy:
            got.append(report(proxy.url, "--spend", "--rules", OF_THE_PROTOCOL)[1])
    want, document = got
    verdicts = [{rule["id"]: rule["verdict"] for rule in d["rules"] if "unload" not in rule["id"]}
                for d in (want, document)]
    check(verdicts[0] == verdicts[1], "models that are used again change no verdict",
          sorted(set(verdicts[0].items()) ^ set(verdicts[1].items())))
    check(document["sent"]["models"] <= 32 < want["sent"]["models"],
          "few models are left behind", (want["sent"], document["sent"]))


def no_model():
    """Models that are only for one thing are no reason to say that there are none."""
    models = [{"model_name": f"m{i}", "trainable": i == 0, "sampleable": i != 0} for i in range(3)]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = json.dumps({"supported_models": models, "session_id": "s"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.do_GET()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _, document = report(f"http://127.0.0.1:{server.server_port}", "--spend", "--rules",
                         "capabilities,model-create")
    check(document["rules"][0]["detail"] == "3" and
          document["rules"][-1]["detail"].startswith("none of the 3 listed models"),
          "models that are named but not for both", document["rules"])
    server.shutdown()
    server.server_close()


def silent(n_answers):
    """A server that takes requests and answers some, then none, is told of."""
    def serve(listener):
        nonlocal n_answers
        while True:
            try:
                peers.append(listener.accept()[0])
                while n_answers > 0 and peers[-1].recv(65536):
                    peers[-1].sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")
                    n_answers -= 1
            except OSError:
                return

    peers = []
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    thread = threading.Thread(target=serve, args=(listener,), daemon=True)
    thread.start()
    began = time.monotonic()
    code, document = report(f"http://127.0.0.1:{listener.getsockname()[1]}",
                            "--answer-timeout", "1", "--rules", "heartbeat*,session-*,config*")
    took = time.monotonic() - began
    check(code == 5 and took < 60, f"a server that is silent after {n_answers} answers",
          (code, took, document))
    if "rules" in document:
        check(document["rules"][-1]["detail"] == "the server does not respond",
              "it is not waited for to the end", document)
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for peer in peers:
        peer.close()


def every_fault():
    """The table has each fault that there is."""
    got = subprocess.run([TNK, "local", "--help"], capture_output=True, text=True, timeout=60)
    text = got.stdout[got.stdout.index("Faults:"):got.stdout.index("Clients use it with:")]
    terms = re.findall(r"^  ([a-z_]+(?:, [a-z_]+)*)(?=:[A-Z]+ |  )", text, re.M)
    names = {name for term in terms for name in term.split(", ")} - {"mild", "all"}
    check(len(names) >= 14, "the help names the faults", names)
    tried = {re.match("[a-z_0-9]+", text)[0] for text, _, _ in FAULTS} | {"refuse"}
    check(names <= tried, "each fault is tried", names - tried)


def main():
    command_line()
    modes()
    if not WRITE:
        free_of_charge()
        versions()
        keys()
        unreachable()
        hostile()
        reused_connections()
        models_that_stay()
        no_model()
        silent(0)
        silent(2)
        interrupted()
        unmet()
        every_fault()
        faults()
    plan()


main()
