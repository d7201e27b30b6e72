#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No secret is shown by any command, at the highest level of its log.

usage: run_secrets.py TNK_COMMAND

Every command is run, those of later versions too, against a server that answers,
one that refuses and repeats what it was sent, one that is not there, and with a
key that nobody takes. What it prints, what it leaves in files, and what the local
server says, holds none of the secrets: keys, tokens, what goes into headers, and
links that let anybody in.

Output is TAP, see test/support/tap.py.
"""
import http.client
import json
import pathlib
import re
import subprocess
import tempfile

from console import CLEAN, TNK, Local, check, plan, scripted, tnk
from model_hub import ModelHub

CANARY = "canary0123456789"
KEY = f"tml-{CANARY}-key"
WEIGHTS_TOKEN = f"weights-{CANARY}"
GIVEN = {
    "TINKER_API_KEY": KEY,
    "CLOUDFLARE_ACCESS_CLIENT_ID": "an-id",
    "CLOUDFLARE_ACCESS_CLIENT_SECRET": f"cloudflare-{CANARY}",
    "HF_TOKEN": f"hf_{CANARY}",
}
# A link whose query lets everybody in, wherever it is in an answer.
LINK = re.compile(rb'https?://[^"\\ ]+\?[^"\\ ]+')


class Watched:
    """What goes by on the way to the local server: the secrets of both sides."""

    def __init__(self, url):
        self.port = int(url.rsplit(":", 1)[1])
        self.secrets = {value for value in GIVEN.values() if CANARY in value} | {WEIGHTS_TOKEN}

    def __call__(self, request):
        for name in ("x-api-key", "x-tinker-weights-access-token", "cf-access-client-secret"):
            self.secrets.add(request.headers.get(name) or KEY)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(request.command, request.path, request.body, {
            name: value for name, value in request.headers.items()
            if name.lower() not in ("host", "accept-encoding", "connection")})
        answer = connection.getresponse()
        read = answer.read()
        connection.close()
        self.secrets.update(link.decode() for link in LINK.findall(read))
        if request.path.endswith("/auth/token") and answer.status == 200:
            self.secrets.add(json.loads(read)["jwt"])
        request.say(answer.status, read,
                    content_type=answer.getheader("content-type", "text/plain"))


def echo(status):
    """Refuse, and say all that was sent."""

    def answer(request):
        request.say(status, {"detail": f"refused: {dict(request.headers)} {request.body[:300]!r}"},
                    content_type="application/json")

    return answer


# ---- The commands ----


def leaves(*path):
    """All commands, from their helps."""
    text = tnk(*path, "--help").stdout
    found = re.findall(rf"^  tnk {' '.join([*path, ''])}(\S+)  ", text, re.M)
    if not re.search(r"^Commands:$", text, re.M):
        yield path, text
    for name in found:
        yield from leaves(*path, name)


def lines(path, home, made):
    """The command lines of a command."""
    given = {
        "local": [["--exit-with-stdin", "--api-key", KEY, "--verbose"]],
        "gateway": [["--model", "tnk/byte-lm", "--exit-with-stdin", "--key", KEY, "--admin-key", KEY,
                     "--record", home / "record"]],
        "lint": [[home / "prompt"]],
        "tokenize": [["--model", "nobody/nothing", "--text", "x"]],
        "detokenize": [["--model", "nobody/nothing", "1"]],
        "sample": [["--model", "tnk/byte-lm", "--max-tokens", 2, "x"],
                   ["--checkpoint", made["sampler"], "--max-tokens", 2, "x", "--json"]],
        "chat": [["--model", "m", "x"], ["--model", "m", "--json", "x"]],
        "auth login": [["--key-stdin"], [KEY]],
        "run info": [[made["run"]], ["nothing"]],
        "checkpoint info": [[made["state"]], ["tinker://a/weights/b"]],
        "checkpoint publish": [[made["state"]]],
        "checkpoint unpublish": [[made["state"]]],
        "checkpoint set-ttl": [[made["state"], "--ttl", 7200]],
        "checkpoint copy": [[made["state"], "--project-id", "p", "--access-token-file",
                             home / "token"]],
        "checkpoint delete": [[made["state"], "-y"]],
        "checkpoint download": [["-o", home, made["external"]], ["-o", home, made["state"]]],
        "checkpoint push-hf": [[made["external"]], [made["state"], "--json"]],
        "session info": [[made["session"]]],
        "session move": [[made["session"], "--project-id", "p"]],
        "session export-trace": [[made["session"], "-o", home / "trace"]],
        "sampler info": [["nothing"]],
        "billing usage": [["2026-01-01", "2026-01-02"]],
    }.get(" ".join(path), [[], ["x"]])
    return [[*path, *more] for more in given]


def files(home):
    """What was written, but for the file that is there to hold keys."""
    for file in home.rglob("*"):
        if file.is_file() and file.name not in ("credentials.json", "token"):
            yield str(file), file.read_bytes().decode("latin-1")


def look(secrets, texts, what):
    for where, text in texts:
        for secret in secrets:
            if secret in text:
                check(False, f"{what}: {where} shows no secret", text)


def run_all(url, home, made, secrets, env, what, direct=None):
    """Runs every command; `conform`, whose broken requests no proxy would pass on, at `direct`."""
    n = 0
    for path, text in leaves():
        for line in lines(path, home, made):
            verbose = (["-v", "--retries", 1, "--timeout", 60]
                       if "--retries" in text and path != ("local",) else [])
            at = direct if direct and path == ("conform",) else url
            got = subprocess.run(
                [TNK, *map(str, line), *map(str, verbose)], input=KEY + "\n", capture_output=True,
                env={**CLEAN, **env, "HOME": str(home), "TINKER_BASE_URL": at}, timeout=120,
                cwd=home, text=True, errors="replace")
            n += 1
            look(secrets, (("standard output", got.stdout), ("standard error", got.stderr)),
                 f"{what}: {' '.join(map(str, line))} ({got.returncode})")
    look(secrets, files(home), what)
    check(n > 20, f"{n} command lines {what}")


def make(local):
    session = local.session()
    run = local.model(session)
    return {"session": session, "run": run,
            "state": local.save(run, "state", 1),
            "sampler": local.save(run, "sampler", 2, "save_weights_for_sampler"),
            "external": local.save(run, "external", 3, "save_weights_external")}


def all_places(home, hub):
    command = {name: value for name, value in GIVEN.items() if name != "TINKER_API_KEY"}
    command["TINKER_CREDENTIAL_CMD"] = f"echo {KEY}"
    stored = {name: value for name, value in GIVEN.items() if name != "TINKER_API_KEY"}
    with Local("--verbose") as local:
        made = make(local)
        with scripted(watched := Watched(local.url)) as (url, _):
            watched.secrets.add(hub.signature)
            run_all(url, home, made, watched.secrets, GIVEN, "with a key", local.url)
            check("adapter_model.safetensors" in hub.files and
                  any(call[0] == "PUT" for call in hub.calls), "weights were pushed", hub.calls)
            # Who refuses it may repeat what it was sent.
            hub.token = "hf_another"
            run_all(url, home, made, watched.secrets, command, "with a command",
                    local.url)
            run_all(url, home, made, watched.secrets, stored, "with a stored key",
                    local.url)
        secrets = watched.secrets
    look(secrets, [("the local server", line) for line in local.seen], "at its end")
    with Local("--verbose", "--tokens", "60", "--api-key", KEY) as local:
        with scripted(watched := Watched(local.url)) as (url, _):
            run_all(url, home, made, watched.secrets, GIVEN, "with tokens", local.url)
            check(any(secret.startswith("eyJ") for secret in watched.secrets), "which were given")
    look(watched.secrets, [("the local server", line) for line in local.seen], "at its end")
    for status in (401, 500):
        with scripted(echo(status)) as (url, _):
            run_all(url, home, made, secrets, {**GIVEN, "TINKER_BASE_URL": url},
                    f"refused with {status}")


with tempfile.TemporaryDirectory() as tmp:
    home = pathlib.Path(tmp)
    (home / "prompt").write_text("{}\n")
    (home / "token").write_text(WEIGHTS_TOKEN + "\n")
    (home / "token").chmod(0o600)
    with ModelHub(GIVEN["HF_TOKEN"], signature=f"signature={CANARY}") as hub:
        GIVEN["HF_ENDPOINT"] = hub.url
        # What would be left of a push is found there.
        GIVEN["TMPDIR"] = GIVEN["HF_HOME"] = str(home)
        all_places(home, hub)
plan()
