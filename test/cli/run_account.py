#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Keys: tnk auth, whoami and ping.

usage: run_account.py TNK_COMMAND [FSYNC_LOG_LIBRARY]

Output is TAP, see test/support/tap.py.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import tempfile
import termios
import time

from console import CLEAN, TNK, Local, NoTerminal, check, plan, scripted, tnk, try_all

PEM = str(pathlib.Path(__file__).resolve().parent / "localhost.pem")
KEY = "tml-canary-0123456789"


class Home:
    """A home directory with what tnk stores in it."""

    def __enter__(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.tmp.name)
        self.folder = self.path / ".tinker"
        self.file = self.folder / "credentials.json"
        return self

    def __exit__(self, *what):
        self.tmp.cleanup()

    def __call__(self, *args, url=None, env=None, **more):
        ours = {"HOME": str(self.path)}
        if url is not None:
            ours["TINKER_BASE_URL"] = url
        return tnk(*args, env={**ours, **(env or {})}, **more)

    def login(self, url, key=KEY, *args, **more):
        return self("auth", "login", "--key-stdin", *args, url=url, input=key + "\n", **more)

    def store(self, store):
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.file.write_text(store if isinstance(store, str) else json.dumps(store))

    def stored(self):
        return json.loads(self.file.read_text())


ABOUT_KEY = {"key_id": 42, "name": "laptop", "note": "", "later": 1, "details": {
    "org_details": {"name": "Org\x1b[2J"}, "user_details": {"email": "me@org"}, "more": [1]}}


def P11_8_login_and_logout():
    with Local("--api-key", KEY) as local, Home() as home:
        got = home("auth", "status", url=local.url)
        check(got.returncode == 3 and re.search(r"^Credentials available +no$", got.stdout, re.M),
              "status without a key", got)
        got = home.login(local.url, "tml-wrong")
        check(got.returncode == 3 and "Invalid API key" in got.stderr and not home.folder.exists(),
              "a key that is refused is not stored", got)
        got = home.login(local.url, "nonsense")
        check(got.returncode == 3 and "tml-" in got.stderr and "nonsense" not in got.stderr
              and not home.folder.exists(), "what is no key is not sent", got)
        got = home("auth", "login", "-", url=local.url, input=f"  {KEY}\r\nmore\n")
        check(got.returncode == 0 and got.stdout.startswith(f"Logged in to {local.url}"),
              "login from a pipe", got)
        check(KEY not in got.stdout + got.stderr, "the key is not shown", got)
        store = home.stored()
        id, = store["keys"]
        check(store["version"] == 1 and store["default"] == id and
              store["keys"][id] == {
                  "type": "manual", "key": KEY, "name": "local", "note": "",
                  "base_url": local.url, "details": store["keys"][id]["details"]},
              "it is stored", store)
        check(stat.S_IMODE(home.file.stat().st_mode) == 0o600 and
              stat.S_IMODE(home.folder.stat().st_mode) == 0o700, "for the user alone")
        check(sorted(p.name for p in home.folder.iterdir()) ==
              ["credentials.json", "credentials.lock"], "and nothing is left beside it")
        got = home("auth", "status", url=local.url)
        check(got.returncode == 0 and re.search(r"^Tinker accessible +yes$", got.stdout, re.M) and
              '"local"' in got.stdout, "status with it", got)
        got = home("auth", "whoami", url=local.url)
        check(got.returncode == 0 and "nobody@localhost" in got.stdout, "whoami by the key", got)
        got = home.login(local.url)
        check(got.returncode == 1 and "tnk auth logout" in got.stderr, "a second login", got)
        got = home("auth", "logout", "--json", url=local.url)
        check(got.returncode == 0 and json.loads(got.stdout) ==
              {"base_url": local.url, "key_id": id, "key_name": "local", "revoked": False} and
              "still" in got.stderr, "logout", got)
        check(home.stored() == {"version": 1, "keys": {}}, "nothing stored is left")
        got = home("auth", "logout", url=local.url)
        check(got.returncode == 3 and "no key" in got.stderr, "a second logout", got)


def P11_8_whoami_by_the_token():
    with Local("--api-key", KEY, "--tokens", "60") as local, Home() as home:
        check(home.login(local.url).returncode == 0, "login where tokens are wanted")
        for name in (["whoami"], ["auth", "whoami"]):
            got = home(*name, "--json", url=local.url)
            check(json.loads(got.stdout) == {"user_urn": "tml:user:local", "email": None,
                                             "org_urn": "tml:organization:local"},
                  f"{' '.join(name)} by the token", got)
        got = home("whoami", url=local.url)
        check(re.search(r"^Email +N/A\nUser +tml:user:local\nOrganization +tml:", got.stdout),
              "for people", got)


def P11_10_keys_stay_with_their_servers():
    with Local() as one, Local() as two, Home() as home:
        check(home.login(one.url).returncode == 0, "a key of one server")
        got = home("run", "list", url=two.url)
        check(got.returncode == 3 and one.url in got.stderr, "is not sent to another", got)
        got = home("auth", "logout", url=two.url)
        check(got.returncode == 3 and f"A key for {one.url} is stored." in got.stderr,
              "nor removed in its place", got)
        check(home.login(two.url, "tml-second").returncode == 0, "a key of the other")
        for server in (one, two):
            check(home("run", "list", url=server.url).returncode == 0, "each has its own")
        check(home.stored()["default"] == next(iter(home.stored()["keys"])),
              "the first one stays the default")
        check(home("auth", "logout", url=one.url).returncode == 0 and
              home("run", "list", url=two.url).returncode == 0, "and one goes alone")


def P11_8_what_is_in_the_file_stays():
    other = {"type": "generated", "key": "tml-o", "name": "n", "base_url": "https://o",
             "details": {}, "colour": ["grün"]}
    with Local() as local, Home() as home:
        home.store({"later": {"a": 1.5}, "version": 1, "keys": {"7": other}})
        check(home.login(local.url).returncode == 0, "login beside another key")
        store = home.stored()
        check(store["later"] == {"a": 1.5} and store["keys"]["7"] == other and
              len(store["keys"]) == 2, "which stays with all that is unknown", store)
        check(stat.S_IMODE(home.file.stat().st_mode) == 0o600, "its mode is made right")
        check(home("auth", "logout", url=local.url).returncode == 0 and
              home.stored() == {"later": {"a": 1.5}, "version": 1, "keys": {"7": other}},
              "and after logout")
        for text in ("{", "[]", '{"version":2}', "x" * 2_000_000):
            home.store(text)
            for got in (home.login(local.url), home("auth", "logout", url=local.url),
                        home("auth", "status", url=local.url)):
                check(got.returncode == 6 and "credentials" in got.stderr and not got.stdout,
                      f"a broken file: {text[:20]}", got)
            check(home.file.read_text() == text, "is not touched")
        home.file.unlink()
        real = home.path / "real.json"
        home.file.symlink_to(real)
        real.write_text("{}")
        real.chmod(0o644)
        got = home.login(local.url)
        check(got.returncode == 0 and "chmod 600" in got.stderr, "others could read it", got)
        check(home.file.is_symlink() and KEY in real.read_text() and
              stat.S_IMODE(real.stat().st_mode) == 0o600, "a link stays a link")


def P11_8_a_link_to_another_folder():
    """A crash must not lose the new name, so the folder that has the file is synced."""
    if len(sys.argv) < 3:
        return
    for name in ("elsewhere", "else where/deep"):
        with Local("--api-key", KEY) as local, Home() as home:
            home.store({})
            home.file.unlink()
            real = home.path.resolve() / name / "real.json"
            real.parent.mkdir(parents=True)
            real.write_text("{}")
            real.chmod(0o600)
            home.file.symlink_to(real)
            log = home.path / "synced"
            got = home.login(local.url, env={
                "LD_PRELOAD": sys.argv[2], "FSYNC_LOG": str(log), "ASAN_OPTIONS": "verify_asan_link_order=0"})
            check(got.returncode == 0 and KEY in real.read_text(), f"the key is stored in {name}", got)
            synced = log.read_text().splitlines()
            check(synced[-1] == str(real.parent), "and that folder is synced after the file",
                  synced)
            check([path.name for path in real.parent.iterdir()] == ["real.json"],
                  "and nothing is left there", list(real.parent.iterdir()))


def P11_8_logins_at_the_same_time():
    with contextlib.ExitStack() as stack, Home() as home:
        urls = [stack.enter_context(Local()).url for _ in range(6)]
        logins = [subprocess.Popen(
            [TNK, "auth", "login", "--key-stdin"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**CLEAN, "HOME": str(home.path), "TINKER_BASE_URL": url}) for url in urls]
        for i, login in enumerate(logins):
            login.stdin.write(f"tml-{i}\n")
            login.stdin.flush()
        for login in logins:
            check(login.communicate(timeout=60)[0] and login.returncode == 0, "a login of many")
        bound = sorted(key["base_url"] for key in home.stored()["keys"].values())
        check(bound == sorted(urls), "none is lost", bound)
        with open(home.folder / "credentials.lock", "r+") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            before = home.file.read_text()
            logout = subprocess.Popen(
                [TNK, "auth", "logout"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**CLEAN, "HOME": str(home.path), "TINKER_BASE_URL": urls[0]})
            try:
                logout.wait(0.3)
                check(False, "a command waits for the lock")
            except subprocess.TimeoutExpired:
                check(home.file.read_text() == before, "a command waits for the lock")
            fcntl.lockf(lock, fcntl.LOCK_UN)
            logout.communicate(timeout=60)
        check(logout.returncode == 0 and len(home.stored()["keys"]) == 5, "and then goes on")


def P1_8_what_is_sent_for_a_login():
    elsewhere = []

    def answer(request):
        if request.path == "/p/api/v1/auth/apikey/me":
            request.say(200, ABOUT_KEY)
        else:
            request.say(404)

    with scripted(answer) as (url, seen), Home() as home:
        got = home.login(url + "/p", env={"TINKER_CREDENTIAL_CMD": "echo tml-printed"})
        check(got.returncode == 0 and "TINKER_CREDENTIAL_CMD is set" in got.stderr,
              "what wins over the stored key is told", got)
        check("\x1b" not in got.stdout and "Org" in got.stdout, "texts are made harmless", got)
        check([(r[0], r[1]) for r in seen] == [("GET", "/p/api/v1/auth/apikey/me")] and
              seen[0][2]["X-API-Key"] == KEY, "one request, with the key itself", seen)
        check(home.stored()["keys"]["42"]["details"] == ABOUT_KEY["details"] and
              home.stored()["keys"]["42"]["base_url"] == url + "/p", "it is stored as told")
        got = home.login(url + "/p", env={"TINKER_API_KEY": "tml-x"})
        check(got.returncode == 1 and len(seen) == 1, "refused before it is asked for", got)

    with scripted(lambda request: elsewhere.append(request) or request.say(200, ABOUT_KEY)) as (
            other, at_other):
        def redirect(request):
            request.say(int(request.path.split("/")[1]), Location=other + request.path)

        with scripted(redirect) as (url, seen), Home() as home:
            for status in (301, 302, 303, 307, 308):
                got = home.login(f"{url}/{status}")
                check(got.returncode == 1 and not home.folder.exists(),
                      f"a redirection by {status} is an error", got)
            check(len(seen) == 5 and not at_other, "and followed nowhere")


def P11_8_logout_of_a_generated_key():
    answers = iter((200, 500, 404))

    def answer(request):
        request.say(next(answers), {"detail": "words"})

    with scripted(answer) as (url, seen), Home() as home:
        for bound, status in ((True, 0), (False, 1), (True, 1)):
            record = {"type": "generated", "key": KEY, "name": "n", "details": {}}
            if bound:
                record["base_url"] = url
            home.store({"default": "5", "keys": {"5": record}})
            got = home("auth", "logout", "--json", url=url)
            said = json.loads(got.stdout)
            check(got.returncode == status and home.stored()["keys"] == {},
                  f"it goes from here, exit status {status}", got)
            check(said["revoked"] is True if status == 0 else "revoke_api_key" in
                  said["error"]["message"] and "this machine alone" in got.stderr,
                  "and how it went at the service is told", got)
            check(KEY not in got.stdout + got.stderr, "without the key", got)
        check([(r[0], r[1]) for r in seen] == [("DELETE", "/api/v1/auth/apikey/me")] * 3 and
              all(r[2]["X-API-Key"] == KEY for r in seen), "once each", seen)
    with Local() as local, Home() as home:
        check(home.login(local.url).returncode == 0, "a key of the local server")
        store = home.stored()
        key, = store["keys"].values()
        key["type"] = "generated"
        home.store(store)
        check(home("auth", "logout", url=local.url).returncode == 0, "is revoked")
        got = home.login(local.url)
        check(got.returncode == 3 and "revoked" in got.stderr, "and taken no more", got)


def P11_10_where_a_key_may_come_from():
    with Local() as local, Home() as home:
        for args, words in (([KEY], "command line"), ([], "--key-stdin"),
                            (["--json"], "--key-stdin"), (["-", "-"], "")):
            got = home("auth", "login", *args, url=local.url)
            check(got.returncode == 2 and words in got.stderr and KEY not in got.stderr,
                  f"login {' '.join(args)} is refused", got)
        for text in ("", "\n", "  \n"):
            got = home("auth", "login", "--key-stdin", url=local.url, input=text)
            check(got.returncode == 1 and "no key was given" in got.stderr, "nothing in it", got)
        got = home.login(local.url, "tml-" + "x" * 70000)
        check(got.returncode == 1 and "too long" in got.stderr, "no key is so long", got)
        got = home.login(local.url, "tml-a b")
        check(got.returncode == 3 and "character" in got.stderr, "nor has blanks", got)
        got = tnk("auth", "login", "--key-stdin", env={"HOME": "", "TINKER_BASE_URL": local.url})
        check(got.returncode == 6 and "HOME" in got.stderr, "nowhere to store it", got)
        got = tnk("auth", "status", env={"HOME": "", "TINKER_BASE_URL": local.url})
        check(got.returncode == 6 and "HOME" in got.stderr, "nor to look for one", got)
        got = tnk("auth", "status",
                  env={"HOME": "", "TINKER_BASE_URL": local.url, "TINKER_API_KEY": KEY})
        check(got.returncode == 0 and "TINKER_API_KEY" in got.stdout,
              "what is set needs no home", got)
        home.folder.mkdir(mode=0o500)
        home.folder.chmod(0o500)
        if os.geteuid() != 0:
            got = home.login(local.url)
            check(got.returncode == 6, "a folder that cannot be written", got)


# ---- A terminal ----


class Terminal:
    """tnk auth login with a terminal as all of its files."""

    def __init__(self, home, url):
        try:
            self.pid, self.fd = pty.fork()
        except OSError as error:
            raise NoTerminal from error
        if self.pid == 0:
            os.execve(TNK, [TNK, "auth", "login"],
                      {**CLEAN, "HOME": str(home.path), "TINKER_BASE_URL": url})
        self.shown = ""
        self.wait_for("not shown): ")
        check(not self.echoes(), "by then it is")

    def echoes(self):
        return termios.tcgetattr(self.fd)[3] & termios.ECHO

    def wait_for(self, words):
        end = time.monotonic() + 60
        while words not in self.shown and time.monotonic() < end:
            if not self.read():
                break
        check(words in self.shown, f"the terminal shows {words.strip()!r}", self.shown)

    def read(self):
        if not select.select([self.fd], [], [], 60)[0]:
            return False
        try:
            text = os.read(self.fd, 4096)
        except OSError:  # everybody has closed the other end
            return False
        self.shown += text.decode()
        return bool(text)

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        while self.read():
            pass
        echoes = self.echoes()
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status), echoes


def P11_8_login_at_a_terminal():
    with Local("--api-key", KEY) as local, Home() as home:
        terminal = Terminal(home, local.url)
        terminal.type("\r")
        terminal.wait_for("not shown): \r\nAPI key (not shown): ")
        terminal.type("wrong\x15tml-canaryx\x7f-0123456789\r")
        status, echoes = terminal.end()
        check(status == 0 and "Logged in" in terminal.shown, "a key is typed", terminal.shown)
        check("canary" not in terminal.shown and "wrong" not in terminal.shown,
              "and not shown", terminal.shown)
        check(echoes, "the terminal is as before")
        check(next(iter(home.stored()["keys"].values()))["key"] == KEY, "with corrections")
        home.file.unlink()
        for name, end in (("Ctrl-C", "\x03"), ("Ctrl-D", "\x04")):
            terminal = Terminal(home, local.url)
            terminal.type("tml-x" + end if name == "Ctrl-C" else end)
            status, echoes = terminal.end()
            check(status == (130 if name == "Ctrl-C" else 1) and echoes and
                  not home.file.exists(), f"{name} ends it", (status, terminal.shown))
        for number in (signal.SIGTERM, signal.SIGHUP):
            terminal = Terminal(home, local.url)
            os.kill(terminal.pid, number)
            status, echoes = terminal.end()
            check(status == 128 + number and echoes and "tml" not in terminal.shown,
                  f"and so does {number.name}", (status, terminal.shown))
        terminal = Terminal(home, local.url)
        terminal.type("\r\r\r")
        status, echoes = terminal.end()
        check(status == 1 and echoes and "no key was given" in terminal.shown,
              "three empty lines", (status, terminal.shown))


# ---- Ping ----


def ping():
    with Local() as local:
        got = local("ping", "-n", 2)
        check(got.returncode == 0 and
              re.match(r"(healthz: [\d.]+ ms\n){2}Service +http://", got.stdout) and
              re.search(r"^HTTP +HTTP/1.1\nTLS +none\nModels +1: tnk/byte-lm$", got.stdout, re.M),
              "ping", got)
        said = local.json("ping")
        check(len(said["round_trips_ms"]) == 3 and said["tls"] is None and
              said["models"] == ["tnk/byte-lm"] and said["call"] == "healthz", "in JSON", said)
        for count in ("0", "x", "10001"):
            got = local("ping", "-n", count)
            check(got.returncode == 2, f"not {count} times", got)
    with Local("--tls-cert", PEM, "--tls-key", PEM) as local:
        said = local.json("ping", env={"SSL_CERT_FILE": PEM})
        check(said["tls"].startswith("TLSv1.") and said["http"] in ("HTTP/2", "HTTP/1.1"),
              "over TLS", said)
        got = local("ping", env={"SSL_CERT_FILE": "/dev/null"})
        check(got.returncode in (5, 6), "a server that is not trusted", got)
    with Local("--api-key", KEY) as local:
        got = local("ping", "--json")
        check(got.returncode == 3 and json.loads(got.stdout)["error"]["http_status"] == 403,
              "up, but not for this key", got)
    got = tnk("ping", env={"TINKER_BASE_URL": "http://127.0.0.1:1", "TINKER_API_KEY": "tml-x"})
    check(got.returncode == 5, "nobody there", got)

    def answer(request):
        if request.path.endswith("get_server_capabilities"):
            request.say(200, {"supported_models": [{"model_name": f"m{i}"} for i in range(7)]})
        elif request.path.endswith("client/config"):
            request.say(200)
        else:
            request.say(404)

    with scripted(answer) as (url, seen):
        got = tnk("ping", env={"TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-x"})
        check(got.returncode == 0 and "get_server_capabilities: " in got.stdout and
              "Models      7: m0, m1, m2, m3, m4, ..." in got.stdout,
              "a server that does not say how it is", got)


try_all((P11_8_login_and_logout, P11_8_whoami_by_the_token,
         P11_10_keys_stay_with_their_servers, P11_8_what_is_in_the_file_stays,
         P11_8_a_link_to_another_folder,
         P11_8_logins_at_the_same_time, P1_8_what_is_sent_for_a_login,
         P11_8_logout_of_a_generated_key, P11_10_where_a_key_may_come_from,
         P11_8_login_at_a_terminal, ping))
plan()
