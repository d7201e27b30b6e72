#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the command does better than the official one, row by row.

usage: run_manners.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json
import re
import signal
import subprocess
import threading
import urllib.parse

from console import CLEAN, TNK, Canned, Local, Terminal, check, plan, try_all

RUN = {"training_run_id": "r:train:0", "base_model": "a/model", "model_owner": "o",
       "is_lora": True, "lora_rank": 8, "corrupted": False,
       "last_request_time": "2026-01-02T03:04:05Z"}


def runs(n):
    return [{**RUN, "training_run_id": f"r{i:03d}:train:0"} for i in range(n)]


def capped(n, cap, kind="training_runs", records=None):
    """Pages of n records that have at most `cap`, whatever is asked for."""
    def page(path):
        query = urllib.parse.parse_qs(path.partition("?")[2])
        offset, limit = int(query["offset"][0]), int(query["limit"][0])
        limit = min(limit, cap)
        found = (records or runs(n))[offset:offset + limit]
        return {kind: found, "cursor": {"offset": offset, "limit": limit, "total_count": n}}
    return page


def P11_10_streams():
    with Canned({"GET training_runs": capped(5, 2), "GET training_runs/x": 404,
                 "DELETE training_runs/r/checkpoints/weights/a": {},
                 "DELETE training_runs/r/checkpoints/weights/b": 403}) as server:
        got = server("run", "list", "--limit", 0, "--json")
        check(len(json.loads(got.stdout)["runs"]) == 5, "stdout is one document", got)
        got = server("run", "list")
        check(len(got.stdout.splitlines()) == 6, "or a table, and nothing else", got)
        got = server("run", "info", "x", "--json")
        check(json.loads(got.stdout)["error"]["http_status"] == 404 and got.stderr,
              "an error is a document too", got)
        got = server("run", "info", "x")
        check(not got.stdout and got.stderr, "and words belong to stderr", got)
        paths = ["tinker://r/weights/a", "tinker://r/weights/b"]
        got = server("checkpoint", "delete", "-y", "--json", *paths)
        said = json.loads(got.stdout)
        progress = [json.loads(line) for line in got.stderr.splitlines() if line[0] == "{"]
        check(said["deleted_count"] == 1 and len(said["failed"]) == 1 and
              progress[-1]["progress"]["done"] == 2, "progress as well, in JSON", got)
        got = server("checkpoint", "delete", "-y", *paths)
        check(got.stdout == "Deleted 1 checkpoint.\n" and "Deleting: 2 of 2" in got.stderr,
              "in lines for people", got)
        got = server("checkpoint", "delete", "-y", "--quiet", *paths)
        check("Deleting" not in got.stderr and "not deleted" in got.stderr, "or not at all", got)
        got = server("checkpoint", "delete", "--json")
        check(json.loads(got.stdout)["error"]["exit_status"] == 2, "a wrong line too", got)
        shown = Terminal("run", "list", "--limit", "0", env=server.env)
        check(shown.end() == 0 and "\033[1mRun ID" in shown.text, "colors on a terminal",
              shown.text)
        for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
            shown = Terminal("run", "list", env={**server.env, name: value})
            check(shown.end() == 0 and not re.search(r"\033\[\d*m", shown.text),
                  f"none with {name}={value}", shown.text)
        got = server("run", "list")
        check("\033" not in got.stdout + got.stderr, "and none elsewhere", got)
        got = server("run", "list", env={"FORCE_COLOR": "1"})
        check("\033[1m" in got.stdout, "unless they are wanted", got)
        got = server("run", "list", "--color", "never", env={"FORCE_COLOR": "1"})
        check("\033" not in got.stdout, "by an option, too", got)


def P11_10_prompts():
    path = "tinker://r:train:0/weights/a"
    call = "DELETE training_runs/r:train:0/checkpoints/weights/a"
    with Canned({call: {}}) as server:
        got = server("checkpoint", "delete", path)
        check(got.returncode == 2 and "--yes" in got.stderr and not got.stdout,
              "nobody is asked where there is no terminal", got)
        got = server("checkpoint", "delete", path, stdin=None, input="y\n")
        check(got.returncode == 2, "nor a pipe", got)
        shown = Terminal("checkpoint", "delete", path, "--json", env=server.env)
        check(shown.end() == 2 and "[y/N]" not in shown.text, "nor with --json", shown.text)
        for keys, status in (("n\n", 0), ("\n", 0), ("\x04", 1), ("\x03", 130)):
            shown = Terminal("checkpoint", "delete", path, env=server.env)
            shown.until("[y/N] ")
            check(path in shown.text, "what would go is shown", shown.text)
            shown.send(keys)
            got = shown.end()
            check(got == status and "Nothing was deleted." in shown.text,
                  f"{keys!r} deletes nothing", (got, shown.text))
        check(server.asked(call) == 0, "indeed", server.seen)
        shown = Terminal("checkpoint", "delete", path, env=server.env)
        shown.until("[y/N] ")
        shown.send("y\n")
        check(shown.end() == 0 and server.asked(call) == 1, "y does", shown.text)
        got = server("checkpoint", "delete", path, "-y")
        check(got.returncode == 0 and server.asked(call) == 2, "and -y without asking", got)


def ended_by(server, number, *args):
    """The exit status of a command that waits for an answer when the signal comes."""
    n = len(server.seen)
    process = subprocess.Popen([TNK, *args], env={**CLEAN, **server.env},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    while not any("slow" in seen[0] for seen in server.seen[n:]):
        if process.poll() is not None:
            break
    process.send_signal(number)
    said, words = process.communicate(timeout=60)
    return process.returncode, said, words


def P11_10_exit_status():
    answers = {f"GET training_runs/{status}": status for status in (400, 401, 403, 404, 422)}
    with Canned({**answers, "GET training_runs/slow": None, "GET training_runs/odd": {"a": 1},
                 "DELETE training_runs/r/checkpoints/weights/a": 403,
                 "DELETE training_runs/r/checkpoints/weights/b": 404}) as server:
        for status, wanted in ((400, 1), (401, 3), (403, 3), (404, 4), (422, 1)):
            got = server("run", "info", str(status))
            check(got.returncode == wanted and not got.stdout, f"{status}", got)
        got = server("run", "info", "odd")
        check(got.returncode == 1 and "base_model" in got.stderr or "training_run_id" in got.stderr,
              "an answer that is none", got)
        got = server("checkpoint", "delete", "-y", "tinker://r/weights/a")
        check(got.returncode == 3, "a deletion that failed", got)
        got = server("checkpoint", "delete", "-y", "tinker://r/weights/a", "tinker://r/weights/b")
        check(got.returncode == 1, "two that failed for two reasons", got)
        for wrong in (["nonsense"], ["run"], ["run", "nonsense"], ["run", "info"],
                      ["run", "info", "a", "b"], ["run", "list", "--limit", "x"],
                      ["run", "list", "--columns", "nonsense"], ["run", "list", "-f", "xml"],
                      ["run", "list", "--nonsense"], ["--csv", "-", "run", "list"],
                      ["version", "--base-url", "x"], ["run", "list", "--base-url", "nonsense"]):
            got = server(*wrong)
            check(got.returncode == 2 and not got.stdout and got.stderr, f"wrong: {wrong}", got)
        got = server("run", "list", env={"TINKER_API_KEY": ""}, )
        check(got.returncode == 3, "no key", got)
        got = server("run", "list", "--base-url", "http://127.0.0.1:1", "--retries", 0)
        check(got.returncode == 5 and "--base-url" in got.stderr, "nobody there", got)
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            got = ended_by(server, number, "run", "info", "slow", "--json")
            check(got[0] == status and json.loads(got[1])["error"]["code"] == "interrupted",
                  f"{number.name}", got)
    got = subprocess.run([TNK, "--help"], capture_output=True, text=True).stdout
    check(all(re.search(rf"^  {n} ", got, re.M) for n in (0, 1, 2, 3, 4, 5, 6, 130)),
          "and --help lists them", got)
    for name in ("local", "gateway"):
        got = subprocess.run([TNK, name, "--help"], capture_output=True, text=True).stdout
        check("with status 0" not in got or not re.search(r"^  130 ", got, re.M),
              f"{name} ends with 0 by Ctrl-C, and lists no other status for it", got)


def briefs():
    """What a group says that it has are names of its commands."""
    got = subprocess.run([TNK, "--help"], capture_output=True, text=True).stdout
    for name, brief in re.findall(r"^  tnk (\w+) +(?:\w+: (.+))$", got, re.M):
        of_it = subprocess.run([TNK, name, "--help"], capture_output=True, text=True).stdout
        known = re.findall(rf"^  tnk {name} (\S+)", of_it, re.M)
        words = [w for w in brief.removesuffix(" ...").split(", ")] if known else []
        check(all(w in known for w in words), f"tnk {name}: {brief}", known)


def P11_10_paging():
    with Canned({"GET training_runs": capped(25, 4)}) as server:
        said = json.loads(server("run", "list", "--limit", 0, "--json").stdout)
        check([r["training_run_id"] for r in said["runs"]] ==
              [r["training_run_id"] for r in runs(25)] and
              (said["total"], said["truncated"]) == (25, False),
              "a server that sends less than it is asked for", said)
        said = json.loads(server("run", "list", "--json").stdout)
        check((len(said["runs"]), said["total"], said["truncated"]) == (20, 25, True),
              "what is left out is told", said)
        got = server("run", "list")
        check(got.stderr.endswith("20 of 25 training runs; --limit 0 lists all.\n"),
              "to people, too", got)
    twice = runs(4)[:3] + runs(4)[2:]  # one came in front meanwhile
    with Canned({"GET training_runs": capped(5, 3, records=twice)}) as server:
        said = json.loads(server("run", "list", "--limit", 0, "--json").stdout)
        check([r["training_run_id"] for r in said["runs"]] ==
              [r["training_run_id"] for r in runs(4)], "what comes twice is shown once", said)
    ids = [f"s-{i}" for i in range(7)]

    def some(path):
        query = urllib.parse.parse_qs(path.partition("?")[2])
        offset = int(query["offset"][0])
        return {"sessions": ids[offset:offset + 3]}
    with Canned({"GET sessions": some}) as server:
        said = json.loads(server("session", "list", "--limit", 0, "--json").stdout)
        check([s["session_id"] for s in said["sessions"]] == ids and not said["truncated"],
              "a list without a total goes on to an empty page", said)
    long = "m" * 300
    with Canned({"GET training_runs": {"training_runs": [{**RUN, "base_model": long}], "cursor":
                 {"offset": 0, "limit": 20, "total_count": 1}}}) as server:
        got = server("run", "list", env={"COLUMNS": "40"})
        check(long in got.stdout and len(got.stdout.splitlines()) == 2,
              "nothing is wrapped or cut", got)
    with Canned({"GET training_runs": [capped(25, 4)("?offset=0&limit=4"), 403]}) as server:
        got = server("run", "list", "--limit", 0, "--json")
        check(got.returncode == 3 and "error" in json.loads(got.stdout),
              "a page that fails leaves no half of a list", got)


def told_of_repeats(server, well):
    """A command says that it repeats a request. The server answers once that was said."""
    words = r"get_run: .*attempt \d"
    with subprocess.Popen([TNK, "run", "info", "ill"], env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        said = []
        for line in process.stderr:
            said.append(line)
            if re.search(words, line):
                well.set()
    check(process.returncode == 0 and well.is_set(), "and after two seconds of it that is told", said)
    well.clear()
    shown = Terminal("run", "info", "ill", env=server.env)
    while not re.search(rf"\r\033\[K{words}", shown.text) and shown.read():
        pass
    well.set()
    check(shown.end() == 0 and re.search(rf"\r\033\[K{words}", shown.text), "on a terminal in a line that goes",
          shown.text)
    well.clear()


def P11_10_time():
    path = "tinker://r/weights/a"
    well = threading.Event()
    publish = "POST training_runs/r/checkpoints/weights/a/publish"
    with Canned({"GET training_runs/r": [503, RUN], "GET training_runs/poor": 402,
                 "GET training_runs/ill": lambda _: RUN if well.is_set() else 503, "POST client/config": {},
                 "GET training_runs/slow": None, publish: 409,
                 "DELETE training_runs/r/checkpoints/weights/a/publish": 409}) as server:
        got = server("run", "info", "r")
        check(got.returncode == 0 and server.asked("GET training_runs/r") == 2,
              "what fails is repeated", got)
        told_of_repeats(server, well)
        got = server("run", "info", "ill", "--timeout", 1)
        check(got.returncode == 5 and "--timeout" in got.stderr, "and no longer than --timeout", got)
        got = server("run", "info", "ill", "--retries", 1)
        check(got.returncode == 1 and "503" in got.stderr and "503" not in got.stdout,
              "--retries", got)
        got = server("run", "info", "poor")
        check(got.returncode == 1 and server.asked("GET training_runs/poor") == 1 and
              "credit" in got.stderr, "402 fails at once", got)
        got = server("run", "info", "slow", "--timeout", 1)
        check(got.returncode == 5 and "--timeout" in got.stderr, "--timeout", got)
        for command in ("publish", "unpublish"):
            got = server("checkpoint", command, path)
            check(got.returncode == 0, f"{command}: it is so already", got)
        check(server.asked(publish) == 1, "and nothing is repeated", server.seen)


def P11_10_input():
    with Canned({}) as server:
        for wrong in (["run", "info", "a?b"], ["run", "info", "a b"], ["run", "info", ".."],
                      ["run", "info", "a%2f"], ["run", "info", "a#b"], ["run", "info", "a\\b"],
                      ["run", "info", "a\nb"], ["run", "info", ""], ["run", "info", "a/b"],
                      ["session", "info", "../x"], ["sampler", "info", "a?b"],
                      ["checkpoint", "list", "--run-id", "a?b"],
                      ["checkpoint", "info", "weights/a"], ["checkpoint", "publish", "x"],
                      ["checkpoint", "publish", "tinker://r/weights/a/b"],
                      ["checkpoint", "publish", "tinker://r/others/a"],
                      ["checkpoint", "unpublish", "tinker:///weights/a"],
                      ["checkpoint", "set-ttl", "tinker://r/weights/a", "--ttl", "60"],
                      ["checkpoint", "copy", "tinker://r/weights/..", "--project-id", "p"],
                      ["checkpoint", "delete", "-y", "tinker://r/weights/a?x"],
                      ["checkpoint", "delete", "-y", "--run-id", "r", "--before", "1 May"],
                      ["billing", "usage", "2026-01-01T00:30:00Z", "2026-01-02"]):
            got = server(*wrong)
            check(got.returncode == 2 and not got.stdout and got.stderr, f"refused: {wrong}", got)
        check(server.seen == [], "and nothing was sent", server.seen)
    records = [{"checkpoint_id": f"weights/{i}", "checkpoint_type": "training", "time": time,
                "tinker_path": f"tinker://r/weights/{i}"}
               for i, time in enumerate(("2026-01-02T00:00:00Z", "2026-01-02T01:00:00"))]
    answers = {"GET training_runs/r/checkpoints": {"checkpoints": records},
               "DELETE training_runs/r/checkpoints/weights/0": {},
               "DELETE training_runs/r/checkpoints/weights/1": {}}
    for day, gone in (("2026-01-02T01:30:00+01:00", [0]), ("2026-01-02T00:30:00Z", [0]),
                      ("2026-01-02", []), ("2026-01-02 01:00:01", [0, 1])):
        with Canned(answers) as server:
            got = server("checkpoint", "delete", "-y", "--run-id", "r", "--before", day)
            check([i for i in (0, 1) if server.asked(
                f"DELETE training_runs/r/checkpoints/weights/{i}")] == gone,
                f"before {day}, with a zone or UTC", got)


def P11_10_cells():
    evil = "a\x1b]0;x\x07b\x1b[31m\x9bc\u202e\n[bold]d[/x]"
    with Canned({"GET training_runs/r": {**RUN, "base_model": evil,
                                         "user_metadata": {"[/x]": evil}},
                 "GET training_runs/404": (404, {"detail": evil}, {})}) as server:
        got = server("run", "info", "r")
        check(got.returncode == 0 and "[bold]d[/x]" in got.stdout and "Metadata [/x]" in got.stdout,
              "texts are no markup", got)
        check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", got.stdout) and
              re.search(r"^Base Model +a ", got.stdout, re.M), "nor act on a terminal", got)
        got = server("run", "info", "r", "--json")
        check(json.loads(got.stdout)["base_model"] == evil and
              not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", got.stdout),
              "in JSON they are whole, and escaped", got)
        got = server("run", "info", "404", "--json")
        check(got.returncode == 4 and
              not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", got.stdout + got.stderr),
              "nor those in errors", got)


def P11_10_start_up():
    with Local("--verbose") as local:
        run = local.model(local.session())
        local("run", "info", run)
    calls = [line.split()[2] for line in local.seen]
    made = max(i for i, call in enumerate(calls) if call.endswith("retrieve_future"))
    asked = calls[made + 1:]
    check(len(asked) == 1 and asked[0].endswith(run), "what a command does not need is not asked",
          asked)
    with Local("--verbose") as local:
        for words in (["version"], ["--help"], ["run", "info"], ["help", "run"]):
            local(*words)
    check(local.seen == [], "many ask nothing", local.seen)


try_all((briefs, P11_10_streams, P11_10_prompts, P11_10_exit_status, P11_10_paging, P11_10_time,
         P11_10_input, P11_10_cells, P11_10_start_up))
plan()
