#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk gateway keys, against a running gateway.

usage: run_gateway_keys.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gateway"))
from gateway import CLEAN, Client, gateway, local
from tap import check, plan

TNK = sys.argv[1]
ADMIN = "master-canary"


class Keys:
    """The command, for one gateway whose address and key are in the environment."""

    def __init__(self, url, key=ADMIN):
        self.env = {**CLEAN, "no_proxy": "*", "NO_COLOR": "1"}
        if url:
            self.env["TNK_GATEWAY_URL"] = url
        if key:
            self.env["TNK_GATEWAY_ADMIN_KEY"] = key

    def run(self, *args):
        return subprocess.run([TNK, "gateway", "keys", *map(str, args)], env=self.env, capture_output=True,
                              text=True, timeout=60, check=False)

    def json(self, *args):
        done = self.run(*args, "--json")
        check(done.returncode == 0, f"{args}: status 0", done)
        return json.loads(done.stdout)

    def fails(self, status, said, *args, code=None, what=None):
        """The command fails with a message on standard error, and with the same
        message, a hint and the status in JSON."""
        what = what or f"{args}"
        done = self.run(*args)
        check(done.returncode == status and said in done.stderr and done.stdout == "", f"{what}: status {status}", done)
        check(ADMIN not in done.stderr, f"{what}: without the key", done)
        done = self.run(*args, "--json")
        error = json.loads(done.stdout)["error"]
        check(error["exit_status"] == status and said in error["message"] and error.get("hint"),
              f"{what}: in JSON", error)
        if code:
            check(error["code"] == code, f"{what}: {code}", error)


def is_key(url, key):
    """The status of a request with it."""
    client = Client(url, x_api_key=key)
    status = client.chat("hi")[0]
    client.close()
    return status


def lives(url):
    """A key from its creation to its end."""
    keys = Keys(url)
    made = keys.json("create", "--session", "run-7", "--expires-in-s", 3600, "--max-requests", 2, "--max-tokens", 4000,
                     "--max-turns", 9, "--max-usd", 0.13, "--max-body", 5000, "--max-concurrent", 3,
                     "--max-per-minute", 100, "--may-reward")
    check(made["session"] == "run-7" and made["may_reward"] is True and made["expires_at"] > 0 and
          made["limits"] == {"max_requests": 2, "max_tokens": 4000, "max_turns": 9, "max_usd": 0.13, "max_body": 5000,
                             "max_concurrent": 3, "max_per_minute": 100}, "all limits arrive", made)
    check('"max_usd": 0.13,' in keys.run("list", "--json").stdout, "numbers have no digits that nobody gave")
    check(is_key(url, made["key"]) == 200, "the key samples")
    plain = keys.json("create")
    check(plain["limits"] == {} and plain["may_reward"] is False and "expires_at" not in plain and plain["session"],
          "without options there are no limits", plain)

    listed = {k["id"]: k for k in keys.json("list")["keys"]}
    check(set(listed) == {made["id"], plain["id"]} and listed[made["id"]]["used"]["requests"] == 1 and
          not any("key" in k for k in listed.values()), "the list has both, their use, and no secret", listed)
    text = keys.run("list").stdout
    rows = text.splitlines()
    check(rows[0].split()[:4] == ["ID", "Session", "Expires", "Requests"] and len(rows) == 3 and
          "1 of 2" in text and "in 59 minutes" in text and "never" in text, "the list as a table", text)

    new = keys.json("rotate", made["id"])
    check(new["id"] == made["id"] and new["key"] != made["key"] and new["used"]["requests"] == 1,
          "a rotated key keeps its id and its use", new)
    check((is_key(url, made["key"]), is_key(url, new["key"])) == (401, 200), "the old key ends, the new one samples")
    check(keys.json("revoke", made["id"], plain["id"]) == {"revoked": [made["id"], plain["id"]]}, "both are revoked")
    check((is_key(url, new["key"]), is_key(url, plain["key"])) == (401, 401), "and do not sample")
    check(keys.json("list") == {"keys": []}, "none is left")
    done = keys.run("list")
    check(done.stdout == "" and "no keys" in done.stderr, "which is said to people", done)


def is_for_people(url):
    """The table after a creation, and words about what else happened."""
    keys = Keys(url)
    done = keys.run("create", "--session", "me", "--max-tokens", 7)
    rows = {line.split(None, 1)[0]: line.split(None, 1)[1] for line in done.stdout.splitlines()}
    check(done.returncode == 0 and rows["Session"] == "me" and rows["max_tokens"] == "7" and rows["Expires"] == "never",
          "create prints a table", done)
    check("shown once" in done.stderr, "the secret is shown once", done)
    check("shown once" not in keys.run("create", "--quiet").stderr, "--quiet: no notes")
    done = keys.run("rotate", rows["ID"])
    check(done.returncode == 0 and rows["ID"] in done.stdout and rows["Key"] not in done.stdout, "rotate too", done)
    done = keys.run("revoke", rows["ID"], "none")
    check(done.returncode == 4 and f"Revoked {rows['ID']}." in done.stderr and "1 of 2 keys" in done.stderr,
          "what was revoked before an error is said", done)


def finds_the_place(url, folder):
    """Address and key from options, a file and the environment."""
    file = pathlib.Path(folder) / "admin.key"
    file.write_text(ADMIN + "\nsecond line\n")
    check(Keys(None, None).run("list", "--url", url, "--admin-key", ADMIN).returncode == 0, "by options")
    check(Keys(None, None).run("list", "--url", url + "/", "--admin-key-file", file).returncode == 0, "by a file")
    check(Keys(url, "wrong").run("list", "--admin-key", ADMIN).returncode == 0, "options go before the environment")
    Keys(None).fails(2, "the address of the gateway is missing", "list")
    Keys("http://user:pw@x").fails(2, "user name", "list", what="an address with a password")
    done = Keys(url).run("list", "--admin-key", "a", "--admin-key-file", file)
    check(done.returncode == 2 and "exclude each other" in done.stderr, "two keys exclude each other", done)
    done = Keys(url, None).run("list", "--admin-key-file", pathlib.Path(folder) / "none")
    check(done.returncode == 6 and "none" in done.stderr, "a file that is missing", done)


def explains(url):
    """Errors with their statuses and hints."""
    keys = Keys(url)
    Keys(url, "wrong").fails(3, "the key of this gateway is another", "list", code="invalid_api_key")
    Keys(url, None).fails(3, "the key of this gateway is another", "list", what="no key")
    Keys(url, "agents").fails(3, "needs the admin key", "list", code="admin_key_required")
    Keys(url, "a\nb").fails(2, "characters that no request can have", "list", what="a key with a line end")
    keys.fails(4, "there is no such key", "revoke", "nobody")
    keys.fails(4, "there is no such key", "rotate", "a/b?c", what="an id is one segment")
    done = keys.run("create", "--session", "a b")
    check(done.returncode == 1 and "the name of a session" in done.stderr, "the gateway's own words", done)
    done = keys.run("revoke", "..")
    check(done.returncode == 2 and "no id of a key" in done.stderr, "an id that changes the path", done)
    for args, said in ((("create", "--max-usd", "-1"), "--max-usd"), (("create", "--max-tokens", "x"), "--max-tokens"),
                       (("create", "x"), "takes no argument"), (("revoke",), "an argument is missing"),
                       (("rotate",), "an argument is missing"), (("rename",), "unknown command"), ((), "usage")):
        done = keys.run(*args)
        check(done.returncode == 2 and said in done.stderr, f"{args}: {said}", done)
    Keys("http://127.0.0.1:1").fails(5, "", "list", what="nothing listens")


class Other(http.server.BaseHTTPRequestHandler):
    """A server that is no gateway."""
    seen = []

    def do_GET(self):
        Other.seen.append((self.path, self.headers.get("X-Api-Key")))
        status, head, body = Other.answer
        self.send_response(status)
        for name, value in head:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def meets_others(url):
    """Servers that are no gateways get an answer that names the address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        keys = Keys(f"http://127.0.0.1:{server.server_port}/gw")
        for status, head, body, said in ((200, (), b"<html>", "not one of a gateway"), (200, (), b"[]", "not one of a"),
                                         (200, (), b"{}", "no list of keys"), (404, (), b"<html>", "status 404"),
                                         (307, [("Location", url + "/tnk/sessions")], b"", "status 307"),
                                         (500, (), b'{"error": 5}', "status 500")):
            Other.answer = status, head, body
            done = keys.run("list")
            check(done.returncode == 1 and said in done.stderr, f"{status} {body}: {said}", done)
        check(set(Other.seen) == {("/gw/tnk/sessions", ADMIN)}, "the path of the address stays", Other.seen)
        server.shutdown()


def is_offered():
    """Help, completion and man page have the commands."""
    def said(*args):
        done = subprocess.run([TNK, *args], capture_output=True, text=True, timeout=60, env=CLEAN, check=False)
        check(done.returncode == 0, f"{args}: status 0", done)
        return done.stdout

    text = said("gateway", "--help")
    check("usage: tnk gateway [COMMAND] [OPTION]..." in text and "tnk gateway keys" in text, "help of gateway", text)
    text = said("help", "gateway", "keys")
    check("usage: tnk gateway keys COMMAND" in text and all(
        f"tnk gateway keys {name}" in text for name in ("create", "list", "revoke", "rotate")), "help of keys", text)
    check("--max-usd USD" in said("gateway", "keys", "create", "--help"), "help of create")
    for shell in ("bash", "zsh", "fish"):
        check("tnk gateway keys rotate" in said("completion", shell), f"completion for {shell}")
    with tempfile.TemporaryDirectory() as folder:
        said("help", "--man-pages", folder)
        page = (pathlib.Path(folder) / "tnk-gateway.1").read_text()
        check(".SS tnk gateway keys create" in page and "\\-\\-max\\-usd" in page and page.count(".SH COMMANDS") == 1 and
              "tnk gateway [COMMAND] [OPTION]..." in page, "the man page", page)
    done = subprocess.run([TNK, "gateway", "--port", "1", "keys", "list"], capture_output=True, text=True, timeout=60,
                          env=CLEAN, check=False)
    check(done.returncode == 2 and 'the options before "keys"' in done.stderr, "options of another command", done)


def takes_prices(service):
    """Two prices or three."""
    for text in ("1", "1,2,", "1,2,3,4", ",2", "1,x", "1,2x", "1,,2"):
        try:
            with gateway(TNK, service, "--prices", text):
                check(False, f"--prices {text}: it serves")
        except RuntimeError as error:
            check("takes two or three numbers" in str(error), f"--prices {text} is refused", error)
    with gateway(TNK, service, "--admin-key", ADMIN, "--prices", "1,2,0.5") as g:
        check(Keys(g.url).run("create", "--max-usd", "1").returncode == 0, "three prices")


def main():
    is_offered()
    with tempfile.TemporaryDirectory() as folder, local(TNK) as service:
        with gateway(TNK, service, "--key", "agents", "--admin-key", ADMIN, "--prices", "0.13,0.4",
                     "--record", os.path.join(folder, "r.jsonl")) as g:
            lives(g.url)
            is_for_people(g.url)
            finds_the_place(g.url, folder)
            explains(g.url)
            meets_others(g.url)
        takes_prices(service)
        with gateway(TNK, service) as g:
            done = Keys(g.url, None).run("create")
            check(done.returncode == 1 and "need an admin key" in done.stderr, "a gateway without keys", done)
    plan()


if __name__ == "__main__":
    main()
