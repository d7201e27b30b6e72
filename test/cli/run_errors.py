#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What goes wrong at the service, as all commands tell it.

usage: run_errors.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json

from console import check, plan, scripted, tnk

# Commands of all kinds: lists, single records, changes, and what needs a session.
COMMANDS = (["run", "list"], ["run", "info", "a:train:0"], ["checkpoint", "list"],
            ["checkpoint", "publish", "tinker://a/weights/b"],
            ["session", "list"], ["session", "info", "s"], ["model", "list"],
            ["billing", "checkpoint-storage"], ["whoami"], ["ping"],
            ["sample", "--model", "tnk/byte-lm", "x"])
# Status of the answer: code, exit status, and words of the hint.
CAUSES = {
    400: ("TNK_EREQUEST", 1, "Repeating it will not help"),
    401: ("TNK_EAUTH", 3, "rejects this credential"),
    402: ("TNK_EBILLING", 1, "no credit"),
    403: ("TNK_EAUTH", 3, "is not permitted to do this"),
    404: ("TNK_ENOTFOUND", 4, "Check the spelling"),
    422: ("TNK_EREQUEST", 1, "Repeating it will not help"),
    429: ("TNK_ERATE", 1, "Too many requests"),
    500: ("TNK_ESERVER", 1, "has a problem"),
    503: ("TNK_ESERVER", 1, "has a problem"),
}


def run(url, *args):
    return tnk(*args, "--retries", 0, env={"TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-x"})


def P11_9_refusals():
    for status, (code, exit_status, _) in CAUSES.items():
        def answer(request):
            # The start-up is let by, so that each command fails by itself.
            if request.path.endswith(("/client/config", "/client/dynamic_config")):
                request.say(200, content_type="application/json")
            else:
                request.say(status, {"detail": "the service's words"},
                            content_type="application/json")

        with scripted(answer) as (url, _):
            for args in COMMANDS:
                words = CAUSES[status][2]
                what = f"{' '.join(args)}, answered {status}"
                got = run(url, *args)
                if status == 404 and args[0] in ("model", "ping", "whoami", "billing"):
                    check(got.returncode == 1 and "Not every server offers this" in got.stderr, what, got)
                    continue
                if status == 404 and args[-1] == "list":
                    words = "does not offer this list"
                check(got.returncode == exit_status and not got.stdout.startswith("{") and
                      f"HTTP {status}" in got.stderr and "the service's words" in got.stderr and
                      words in got.stderr, what, got)
                got = run(url, *args, "--json")
                error = json.loads(got.stdout)["error"]
                check(error["code"] == code and error["http_status"] == status and
                      error["exit_status"] == got.returncode == exit_status and
                      words in error["hint"], f"{what}, in JSON", got)


def P11_9_no_answer():
    def silent(request):
        request.close_connection = True

    with scripted(silent) as (url, _):
        got = run(url, "run", "list", "--json")
        error = json.loads(got.stdout)["error"]
        check(got.returncode == 5 and error["code"] == "TNK_ECONN" and "--base-url" in error["hint"],
              "a connection that ends", got)
    for url, code, words in (("http://127.0.0.1:1", "TNK_ECONN", "--base-url"),
                             ("http://nothing.invalid", "TNK_EDNS", "--base-url"),
                             ("https://127.0.0.1:1", "TNK_ECONN", "--base-url")):
        got = run(url, "run", "list", "--json")
        error = json.loads(got.stdout)["error"]
        check(got.returncode == 5 and error["code"] == code and words in error["hint"], url, got)
    with scripted(lambda request: request.say(200, b"<html>hello")) as (url, _):
        got = run(url, "run", "list", "--json")
        error = json.loads(got.stdout)["error"]
        check(got.returncode == 1 and error["code"] == "TNK_EPROTO" and
              "Tinker API" in error["hint"], "somebody else answers", got)
        got = run(url.replace("http:", "https:"), "run", "list", "--json")
        error = json.loads(got.stdout)["error"]
        check(got.returncode == 5 and error["code"] == "TNK_ETLS" and "https" in error["hint"],
              "without TLS", got)
    got = tnk("run", "list", env={"HOME": "/nowhere"})
    check(got.returncode == 3 and "tnk auth login" in got.stderr and
          "tnk auth status" in got.stderr, "no credential", got)


P11_9_refusals()
P11_9_no_answer()
plan()
