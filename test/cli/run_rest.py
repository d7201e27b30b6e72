#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The commands over what a service keeps, against the local server.

usage: run_rest.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import datetime
import json
import re
import tempfile
import time
import urllib.parse

from console import Canned, Local, check, plan, tnk
from usage import STORAGE, USAGE, USAGE_ANSWERS


def S_10_runs_are_listed_and_shown(local):
    got = local("run", "list")
    check((got.returncode, got.stdout, got.stderr) == (0, "", "No training runs.\n"),
          "a list of nothing says so beside the output", got)
    session = local.session()
    ids = [local.model(session) for _ in range(3)]
    local.save(ids[0], "first", 1)
    got = local("run", "list")
    lines = got.stdout.splitlines()
    check(lines[0].split("  ")[0] == "Run ID" and len(lines) == 4 and
          all(any(line.startswith(i + " ") for line in lines) for i in ids),
          "each run has a line", got)
    check(re.search(r"tnk/byte-lm +Rank 2 +just now +OK$", lines[1]),
          "with what is to be known of it", lines)
    got = local("run", "list", "--limit", 2)
    check(len(got.stdout.splitlines()) == 3 and
          got.stderr == "2 of 3 training runs; --limit 0 lists all.\n",
          "a limit is told", got)
    said = local.json("run", "list", "--limit", 2)
    check(len(said["runs"]) == 2 and said["total"] == 3 and said["truncated"] is True,
          "in JSON too", said)
    for limit in (0, -1):
        said = local.json("run", "list", "--limit", limit)
        check(sorted(run["training_run_id"] for run in said["runs"]) == sorted(ids) and
              said["truncated"] is False, f"{limit} lists all", said)
    said = local.json("run", "list", "--offset", 2)
    check(len(said["runs"]) == 1, "--offset passes over some", said)
    got = local("run", "list", "-c", "status, id ,checkpoint,checkpoint_time")
    check(got.stdout.splitlines()[0].split("  ")[0] == "Status" and
          "weights/first" in got.stdout and "None" in got.stdout and "N/A" in got.stdout,
          "columns are chosen", got)
    for columns in ("nonsense", "id,,x", ",", ""):
        got = local("run", "list", "--columns", columns)
        check(got.returncode == 2 and not got.stdout, f"no column {columns!r}", got)
    got = local("run", "info", ids[0])
    check(re.search(rf"^Run ID +{re.escape(ids[0])}$", got.stdout, re.M) and
          re.search(r"^Last Training Checkpoint +weights/first$", got.stdout, re.M),
          "run info", got)
    said = local.json("run", "info", ids[0])
    check(said["training_run_id"] == ids[0] and said["lora_rank"] == 2 and
          said["last_checkpoint"]["checkpoint_id"] == "weights/first" and
          said["last_sampler_checkpoint"] is None and said["corrupted"] is False,
          "and in JSON", said)


def S_3_checkpoints_are_listed(local):
    session = local.session()
    run = local.model(session)
    paths = [local.save(run, f"step-{i}", i) for i in range(1, 4)]
    paths.append(local.save(run, "out", 4, "save_weights_for_sampler"))
    said = local.json("checkpoint", "list", "--run-id", run)
    check(sorted(c["tinker_path"] for c in said["checkpoints"]) == sorted(paths) and
          said["run_id"] == run and said["truncated"] is False, "those of a run", said)
    said = local.json("checkpoint", "list", "--limit", 2)
    check(len(said["checkpoints"]) == 2 and said["total"] >= 4 and said["truncated"] is True and
          "run_id" not in said, "some of all", said)
    said = local.json("checkpoint", "list", "--limit", 0)
    check(said["total"] == len(said["checkpoints"]) and said["truncated"] is False, "all", said)
    got = local("checkpoint", "list", "--run-id", run)
    check(all(path in got.stdout for path in paths) and "Never" in got.stdout and
          re.search(r"^weights/step-1 +training +\d+\.\d KB +No +just now +Never +tinker:",
                    got.stdout, re.M), "as a table", got)
    return run, paths


def S_4_a_checkpoint_is_shown_and_published(local, run, path):
    said = local.json("checkpoint", "info", path)
    check(said["tinker_path"] == path and said["is_lora"] is True and said["lora_rank"] == 2 and
          said["public"] is False and said["expires_at"] is None, "what it is", said)
    got = local("checkpoint", "info", path)
    check(re.search(rf"^Training Run ID +{re.escape(run)}$", got.stdout, re.M), "as a table", got)
    for _ in range(2):
        got = local("checkpoint", "publish", path)
        check((got.returncode, got.stdout) == (0, ""), "published, also when it is already", got)
    check(local.json("checkpoint", "info", path)["public"] is True, "and it is")
    for _ in range(2):
        said = local.json("checkpoint", "unpublish", path)
        check(said == {"tinker_path": path, "public": False}, "taken back", said)
    got = local("checkpoint", "info", path + "-none")
    check(got.returncode == 4 and not got.stdout, "one that is not there", got)


def S_5_a_time_to_live_is_set_or_removed(local, path):
    for ttl, seconds in (("3600", 3600), ("90m", 5400), ("2h", 7200), ("30d", 2592000),
                         ("4w", 2419200)):
        said = local.json("checkpoint", "set-ttl", path, "--ttl", ttl)
        check(said == {"tinker_path": path, "ttl_seconds": seconds}, ttl, said)
    check(local.json("checkpoint", "info", path)["expires_at"], "it expires")
    got = local("checkpoint", "info", path)
    check(re.search(r"^Expires +in 3 weeks$", got.stdout, re.M), "and people are told when", got)
    said = local.json("checkpoint", "set-ttl", path, "--remove")
    check(said["ttl_seconds"] is None, "not any more", said)
    check(local.json("checkpoint", "info", path)["expires_at"] is None, "it stays")
    for wrong in ([], ["--ttl", "2h", "--remove"], ["--ttl", "59m"], ["--ttl", "3651d"],
                  ["--ttl", "-3600"], ["--ttl", "1.5h"], ["--ttl", "2hh"], ["--ttl", "h"],
                  ["--ttl", "99999999999999999999"]):
        got = local("checkpoint", "set-ttl", path, *wrong)
        check(got.returncode == 2 and not got.stdout, f"refused: {wrong}", got)


def copies(local, path):
    got = local("checkpoint", "copy", path, "--project-id", "elsewhere")
    check(got.returncode == 0 and re.fullmatch(r"tinker://\S+/weights/\S+\n", got.stdout),
          "copy prints the path of the copy", got)
    said = local.json("checkpoint", "copy", path, "--ttl", "1d",
                      env={"TINKER_PROJECT_ID": "elsewhere"})
    check(said["source_path"] == path and said["tinker_path"] != path, "and in JSON", said)
    check(local.json("checkpoint", "info", said["tinker_path"])["expires_at"], "with its time")
    got = local("checkpoint", "copy", path)
    check(got.returncode == 2 and "project" in got.stderr, "without a project", got)


def S_6_checkpoints_are_deleted(local, run, paths):
    got = local("checkpoint", "delete", paths[0], paths[0], "--yes")
    check((got.returncode, got.stdout) == (0, "Deleted 1 checkpoint.\n"), "once each", got)
    got = local("checkpoint", "delete", "-y", paths[1], "tinker://x/weights/none", "--json")
    said = json.loads(got.stdout)
    check(got.returncode == 1 and said["deleted_count"] == 1 and
          [f["tinker_path"] for f in said["failed"]] == ["tinker://x/weights/none"],
          "a failure is told, and leaves the others to go on", got)
    for gone in (["tinker://x/weights/none"], ["tinker://x/weights/none", "tinker://x/weights/no"]):
        got = local("checkpoint", "delete", "-y", *gone, "--json")
        check(got.returncode == 4 and json.loads(got.stdout)["deleted_count"] == 0,
              f"the service has none of them: {gone}", got)
    for wrong in ([], ["--run-id", run, paths[2]], ["--type", "sampler", paths[2]],
                  ["--before", "2026-01-01", paths[2]], [paths[2], "no-path"],
                  [paths[2], "tinker://a/b"], [paths[2], "tinker://a?/weights/x"],
                  ["--run-id", run, "--type", "nonsense"],
                  ["--run-id", run, "--before", "yesterday"], ["--run-id", run, "--after", "1:00"]):
        got = local("checkpoint", "delete", "-y", *wrong)
        check(got.returncode == 2 and not got.stdout, f"refused: {wrong}", got)
    left = local.json("checkpoint", "list", "--run-id", run)["checkpoints"]
    check(len(left) == 2, "nothing was deleted by those", left)
    for none in (["--before", "2001-02-03"], ["--after", "2999-01-01T00:00:00+01:00"],
                 ["--type", "external_weights"]):
        said = local.json("checkpoint", "delete", "-y", "--run-id", run, *none)
        check(said == {"deleted_count": 0, "failed": []}, f"none: {none}", said)
    said = local.json("checkpoint", "delete", "-y", "--run-id", run, "--type", "sampler")
    check(said["deleted_count"] == 1, "those of a kind", said)
    said = local.json("checkpoint", "delete", "-y", "--run-id", run, "--after", "2001-02-03")
    check(said["deleted_count"] == 1, "those after a day", said)


def sessions(local):
    id = local.session(user_metadata={"kind": "canary"}, display_name="Blue Parrot")
    run = local.model(id)
    said = local.json("session", "list", "--limit", 0)
    check({"session_id": id} in said["sessions"] and said["truncated"] is False, "the list", said)
    said = local.json("session", "list", "--limit", 1)
    check(len(said["sessions"]) == 1 and said["truncated"] is True, "is cut and says so", said)
    said = local.json("session", "info", id)
    check(said["training_run_ids"] == [run] and said["user_metadata"] == {"kind": "canary"} and
          said["display_name"] == "Blue Parrot", "info", said)
    got = local("session", "info", id)
    check(re.search(r"^Metadata kind +canary$", got.stdout, re.M), "as a table", got)
    for wanted in (["--metadata", "kind=canary"], ["--name", "parrot blue"],
                   ["--session-id", id], ["--metadata", "kind=canary", "--status", "active"]):
        said = local.json("session", "search", *wanted)
        check([s["session_id"] for s in said["sessions"]] == [id], f"search {wanted}", said)
    got = local("session", "search", "--name", "parrot")
    check(re.search(rf"^{id} +Blue Parrot +active +0 ", got.stdout, re.M), "as a table", got)
    said = local.json("session", "search", "--name", "cockatoo")
    check(said["sessions"] == [], "nothing found", said)
    said = local.json("session", "move", id, "--project-id", "elsewhere")
    check(said == {"session_id": id, "project_id": "elsewhere"}, "move", said)
    said = local.json("session", "search", "--project-id", "elsewhere", "--project-id", "other")
    check([s["session_id"] for s in said["sessions"]] == [id], "it is found there", said)
    for wrong in (["search", "--status", "nonsense"], ["search", "--metadata", "x"],
                  ["search", "--owner", "nobody"], ["move", id], ["info"], ["info", "a b"]):
        got = local("session", *wrong)
        check(got.returncode == 2 and not got.stdout, f"refused: session {wrong}", got)
    sampler = local.post("create_sampling_session", {
        "session_id": id, "base_model": "tnk/byte-lm"})["sampling_session_id"]
    said = local.json("sampler", "info", sampler)
    check(said == {"sampler_id": sampler, "base_model": "tnk/byte-lm", "model_path": None},
          "a sampler", said)
    got = local("sampler", "info", sampler)
    check(re.search(r"^Model Path +None$", got.stdout, re.M), "as a table", got)


def models(local):
    said = local.json("model", "list")
    check(said["models"][0]["model_name"] == "tnk/byte-lm" and
          set(said["models"][0]) == {"model_name", "max_context_length", "trainable",
                                     "sampleable"}, "models", said)
    check(local.json("model", "list", "BYTE") == said, "by a part of the name")
    got = local("model", "list", "nope")
    check(got.returncode == 4 and not got.stdout and "nope" in got.stderr, "none", got)
    got = local("model", "list", "--json", "nope")
    check(got.returncode == 4 and json.loads(got.stdout)["error"], "none in JSON", got)
    got = local("model", "list")
    check(got.stdout.splitlines()[0].split() == ["Model", "Max", "Context", "Trainable",
                                                 "Sampleable"], "as a table", got)


USAGE_CSV = (
    "bucket_start,bucket_end,base_model,user_id,user_name,session_id,project_id,"
    "estimated_cost_usd,effective_rate_usd_per_million_tokens,"
    "effective_rate_usd_per_gigabyte_month,type,token_count,cached,free,gigabyte_hours\r\n"
    "2026-01-02T03:00:00Z,2026-01-02T04:00:00Z,a/model,urn:1,\"A, \"\"B\"\"\",s-1,,0.25,0.5,,"
    "training,500000,,,\r\n"
    "2026-01-02T03:00:00Z,2026-01-02T04:00:00Z,a/model,urn:1,\"A, \"\"B\"\"\",s-1,,0.25,0.5,,"
    "sampling_prefill,7,True,,\r\n"
    "2026-01-02T03:00:00Z,2026-01-02T04:00:00Z,a/model,urn:1,\"A, \"\"B\"\"\",,,,0.5,,"
    "storage,,,False,1.5\r\n"
    "2026-01-02T03:00:00Z,2026-01-02T04:00:00Z,a/model,urn:1,\"A, \"\"B\"\"\",s-0,,0.25,0.5,,"
    "news,,,,\r\n")


def S_11_what_was_used(where):
    days = ("2026-01-02T03:00:00Z", "2026-01-03")
    with Canned(USAGE_ANSWERS) as server:
        got = server("billing", "usage", *days, "--json")
        check(json.loads(got.stdout) == USAGE, "JSON is what the service said", got)
        query = urllib.parse.parse_qs(server.seen[-1][0].partition("?")[2])
        check(query == {"starting_on": ["2026-01-02T03:00:00Z"],
                        "ending_before": ["2026-01-03T00:00:00Z"]}, "what is asked", query)
        # Binary, for the ends of lines count.
        got = server("billing", "usage", *days, "--csv", where + "/u.csv",
                     "--sessions-csv", where + "/s.csv")
        check(got.returncode == 0 and not got.stdout and
              got.stderr.count("Wrote ") == 2, "files", got)
        wrote = open(where + "/u.csv", newline="").read()
        check(wrote == USAGE_CSV, "the rows as CSV", wrote)
        wrote = open(where + "/s.csv", newline="").read()
        check(wrote == "session_id,user_metadata\r\ns-0,\r\ns-1,\"{\"\"k\"\":\"\"v\"\"}\"\r\n",
              "the sessions", wrote)
        got = server("billing", "usage", *days)
        check("500000 tokens" in got.stdout and "1.500 GB hours" in got.stdout and
              "Together 0.7500 USD" in got.stderr, "as a table", got)
        for wrong in (["x", "2026-01-03"], ["2026-01-03", "2026-01-02"],
                      ["2026-01-02T03:30:00Z", "2026-01-03"], ["2026-01-01", "2026-02-01"],
                      ["2026-01-02"], [*days, "--json", "--csv", "-"]):
            n = len(server.seen)
            got = server("billing", "usage", *wrong)
            check(got.returncode == 2 and len(server.seen) == n, f"refused: {wrong}", got)
        got = server("billing", "usage", "1767322800", "1767326400000", "--csv", "-")
        check(got.returncode == 0 and got.stdout, "Unix seconds and milliseconds", got)
        got = server("billing", "usage", *days, "--csv", where + "/none/u.csv")
        check(got.returncode == 6 and "none/u.csv" in got.stderr, "no such folder", got)
        got = server("billing", "checkpoint-storage", "--json", "--project-id", "p")
        check(json.loads(got.stdout) == STORAGE and "project_id=p" in server.seen[-1][0],
              "storage", got)
        got = server("billing", "checkpoint-storage", "--csv", "-")
        check(got.stdout.splitlines()[1] == "0.1,p,urn:1,a@b,A,3,2048,2e-6,0.5", "as CSV", got)
        got = server("billing", "checkpoint-storage")
        check(re.search(r"^p +A +a@b +3 +2\.0 KB +0\.5000$", got.stdout, re.M), "as a table", got)
    with Canned({"GET billing/usage/events": {"data": [], "sessions": {}}}) as server:
        got = server("billing", "usage", *days)
        check((got.returncode, got.stdout) == (0, "") and got.stderr, "nothing", got)
        got = server("billing", "usage", *days, "--csv", where + "/e.csv")
        wrote = open(where + "/e.csv", newline="").read()
        check(wrote == "\r\n", "nothing as CSV", wrote)


def audit():
    with Canned(USAGE_ANSWERS) as server:
        got = server("audit", "--json", "--day", "2026-01-02", "--event-type", "checkpoints")
        said = json.loads(got.stdout)["entries"][0]
        check(said["event_details"] == {"a": 1} and said["event"] == "checkpoint_read", "audit", got)
        check(set(server.seen[-1][0].partition("?")[2].split("&")) ==
              {"event_type=checkpoints", "day=2026-01-02"}, "what is asked", server.seen)
        got = server("audit")
        check("2026-01-02T03:04:05Z" in got.stdout and "checkpoint_read" in got.stdout,
              "as a table", got)
        for wrong in (["--day", "02.01.2026"], ["--event-type", "nonsense"]):
            got = server("audit", *wrong)
            check(got.returncode == 2 and not got.stdout, f"refused: {wrong}", got)


def S_12_traces(where):
    trace = b"\x0a" + bytes(range(256)) * 1000
    answers = {"GET trace": lambda path: (200, trace, {"Content-Type": "application/octet-stream"})}
    with Canned(answers) as server:
        url = server.url + "/api/v1/trace?signature=canary"
        answers_of_export = {"status": "ready", "url": url}
        server.answers["GET sessions/s-1/trace_export"] = answers_of_export
        file = where + "/new/t.pftrace"
        got = server("session", "export-trace", "s-1", "-o", file, "--json")
        said = json.loads(got.stdout)
        check(said == {"session_id": "s-1", "destination": file, "file_size_bytes": len(trace)},
              "saved", got)
        check(open(file, "rb").read() == trace, "as it is")
        sent = server.seen[-1]
        check("X-API-Key" not in sent[2] and "tml-canary" not in str(sent), "without our key", sent)
        check("canary" not in got.stdout + got.stderr, "and the URL is not told", got)
        got = server("session", "export-trace", "s-1", "--url-only")
        check(got.stdout == url + "\n", "unless it is asked for", got)
        got = server("session", "export-trace", "s-1", "--url-only", "-o", "x")
        check(got.returncode == 2, "one of the two", got)
        server.answers["GET trace"] = 404
        got = server("session", "export-trace", "s-1", "-o", file, "--verbose")
        check(got.returncode == 4 and "signature" not in got.stderr and
              open(file, "rb").read() == trace, "a failure leaves the old file", got)


def S_14_sizes_and_times():
    now = time.time()
    rows = [(0, 10, "0 B", "just now"), (1023, 90 * 60, "1023 B", "1 hour ago"),
            (1024, 30 * 60, "1.0 KB", "30 minutes ago"), (1536, 3.5 * 86400, "1.5 KB", "3 days ago"),
            (5 << 30, 15 * 86400, "5.0 GB", "2 weeks ago"), (1 << 60, -2.5 * 3600, "1.0 EB", "in 2 hours"),
            (None, -30, "N/A", "in less than a minute"), (-1, -2.5 * 86400, "N/A", "in 2 days")]
    records = [{"checkpoint_id": f"weights/{i}", "checkpoint_type": "training",
                "tinker_path": f"tinker://r/weights/{i}", "size_bytes": size,
                "time": datetime.datetime.fromtimestamp(now - age, datetime.timezone.utc).isoformat()}
               for i, (size, age, _, _) in enumerate(rows)]
    records.append({**records[0], "checkpoint_id": "weights/old", "time": "2001-02-03T04:05:06Z"})
    with Canned({"GET training_runs/r/checkpoints": {"checkpoints": records}}) as server:
        got = server("checkpoint", "list", "--run-id", "r")
        lines = got.stdout.splitlines()[1:]
        for line, (_, _, size, age) in zip(lines, rows):
            cells = re.split(r"  +", line)
            check((cells[2], cells[4], cells[5]) == (size, age, "Never"), f"{size}, {age}", line)
        check("2001-02-03 " in lines[-1], "a date from long ago", lines)
        said = json.loads(server("checkpoint", "list", "--run-id", "r", "--json").stdout)
        check(said["checkpoints"][-1]["time"] == "2001-02-03T04:05:06Z" and
              said["checkpoints"][4]["size_bytes"] == 5 << 30, "in JSON as programs do", said)


def failures(local):
    got = local("run", "info", "nothing:train:0")
    check(got.returncode == 4 and not got.stdout and "nothing:train:0" in got.stderr,
          "what there is not", got)
    got = local("run", "info", "nothing:train:0", "--json")
    error = json.loads(got.stdout)["error"]
    check(error["code"] == "TNK_ENOTFOUND" and error["http_status"] == 404 and
          error["exit_status"] == got.returncode == 4, "in JSON", got)
    got = local("--json", "run", "info")
    check(got.returncode == 2 and json.loads(got.stdout)["error"]["code"] == "usage",
          "a wrong line in JSON", got)
    got = tnk("run", "list", env={"HOME": "/nowhere"})
    check(got.returncode == 3 and "TINKER_API_KEY" in got.stderr, "no key", got)


def main():
    with tempfile.TemporaryDirectory() as where:
        with Local() as local:
            S_10_runs_are_listed_and_shown(local)
            run, paths = S_3_checkpoints_are_listed(local)
            S_4_a_checkpoint_is_shown_and_published(local, run, paths[0])
            S_5_a_time_to_live_is_set_or_removed(local, paths[0])
            copies(local, paths[0])
            S_6_checkpoints_are_deleted(local, run, paths)
            sessions(local)
            models(local)
            failures(local)
        S_11_what_was_used(where)
        audit()
        S_12_traces(where)
        S_14_sizes_and_times()
    plan()


main()
