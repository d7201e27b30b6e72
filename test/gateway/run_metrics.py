#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GET /metrics of tnk gateway, and the dashboard that shows it.

usage: run_metrics.py TNK_COMMAND SOURCE_ROOT

promtool of Debian's package prometheus checks the text if it is installed.

Output is TAP, see test/support/tap.py.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from gateway import Client, gateway, local
from tap import check, plan, skip

TNK, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SERIES = re.compile(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})? (\S+)')


def read(text):
    """The values by their series. Each line must have the exact form."""
    values, types, name = {}, {}, None
    check(text.endswith("\n"), "the last line is complete")
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
        elif line.startswith("# TYPE "):
            check(line.split(" ")[2] == name and name not in types, f"{name}: one type, after its help", line)
            types[name] = line.split(" ")[3]
        else:
            match = SERIES.fullmatch(line)
            if not match or not match[1].startswith(name) or match[1] + (match[2] or "") in values:
                check(False, "a line has the form of a value, once", line)
            values[match[1] + (match[2] or "")] = float(match[3])
    return values, types


def is_refused(url, key, status):
    client = Client(url, **({"x_api_key": key} if key else {}))
    got, answer = client.ask("GET", "/metrics")
    check(got == status and "tnk_gateway" not in str(answer), f"with the key {key}: {status}", answer)
    client.close()


def needs_the_admin_key(service):
    with gateway(TNK, service, "--key", "agents", "--admin-key", "master") as g:
        admin = Client(g.url, x_api_key="master")
        own = admin.post("/tnk/sessions", {"session": "me", "may_reward": True})[1]["key"]
        for key, status in ((None, 401), ("wrong", 401), ("agents", 403), (own, 403)):
            is_refused(g.url, key, status)
        for path in ("/metrics/", "/s/me/metrics", "/metrics?x=1"):
            check(Client(g.url, x_api_key="agents").ask("GET", path)[0] == 403, f"{path}: nor by this path")
            check(Client(g.url, authorization="Bearer master").ask("GET", path)[0] == 200, f"{path} with the admin key")
        check("/metrics needs the admin key of this gateway" in
              Client(g.url, x_api_key="agents").ask("GET", "/metrics")[1]["error"]["message"], "which is said")
        check(admin.ask("HEAD", "/metrics") == (200, ""), "the head alone")
        check(admin.post("/metrics", "")[0] == 405, "it is read alone")
    with gateway(TNK, service, "--key", "agents") as g:
        is_refused(g.url, "agents", 403)


def asks(url):
    """Two sessions, two operations, a stream, and an error."""
    admin = Client(url, x_api_key="master")
    for path, more in (("/s/a/v1/chat/completions", {}), ("/s/b/v1/chat/completions", {"stream": True})):
        check(admin.chat("hi", path=path, **more)[0] == 200, path)
    check(admin.post("/v1/completions", {"prompt": "hi", "max_tokens": 3, "seed": 1})[0] == 200, "a plain prompt")
    check(admin.chat([])[0] == 400, "an error")
    check(admin.post("/tnk/sessions", {})[0] == 200, "a key")
    check(admin.post("/tnk/sampler", {"base_model": "tnk/byte-lm"})[0] == 200, "other weights")
    return admin


def counts(service, folder):
    record = pathlib.Path(folder) / "record"
    with gateway(TNK, service, "--admin-key", "master", "--name", 'a "model"', "--record", record) as g:
        admin = asks(g.url)
        status, text = admin.ask("GET", "/metrics")
        check(status == 200 and admin.type == "text/plain; version=0.0.4; charset=utf-8", "the type of Prometheus",
              admin.type)
        values, types = read(text)
    size = record.stat().st_size  # all of it is written by now
    model = 'gen_ai_request_model="a \\"model\\""'
    chat, plain = (f'gen_ai_operation_name="{name}",{model}' for name in ("chat", "text_completion"))
    took, used = "gen_ai_server_request_duration", "gen_ai_client_token_usage"
    for series, value in ((f"{took}_count{{{chat}}}", 2), (f"{took}_count{{{plain}}}", 1),
                          (f'{took}_count{{{chat},error_type="400"}}', 1),
                          (f'{took}_bucket{{{chat},le="+Inf"}}', 2),
                          (f"gen_ai_server_time_to_first_token_count{{{chat}}}", 1),
                          (f'{used}_sum{{{plain},gen_ai_token_type="input"}}', 2),
                          (f'{used}_sum{{{plain},gen_ai_token_type="output"}}', 3),
                          (f'{used}_count{{{chat},gen_ai_token_type="output"}}', 2),
                          ("tnk_gateway_http_requests_total", 7), ("tnk_gateway_continued_prompts_total", 0),
                          ("tnk_gateway_requests_in_progress", 0), ("tnk_gateway_requests_waiting", 0),
                          ("tnk_gateway_connections", 1), ("tnk_gateway_sessions", 3), ("tnk_gateway_keys", 1),
                          ("tnk_gateway_record_bytes", size), ("tnk_gateway_ready", 1),
                          ("tnk_gateway_store_older_copies_total", 0),
                          ("tnk_gateway_sampler_version", 2), ("tnk_gateway_old_samplers", 0)):
        check(values.get(series) == value, f"{series} {value}", values.get(series))
    check(0 < values[f"{took}_sum{{{chat}}}"] < 60, "times are in seconds", values[f"{took}_sum{{{chat}}}"])
    check(set(types.values()) == {"counter", "gauge", "histogram"}, "types", types)
    with gateway(TNK, service, "--admin-key", "master", "--record", record) as g:
        again = read(Client(g.url, x_api_key="master").ask("GET", "/metrics")[1])[0]
    check(again["tnk_gateway_record_bytes"] > size and again["tnk_gateway_keys"] == 1 and
          again["tnk_gateway_record_bytes"] == record.stat().st_size, "a restart keeps the record and its keys", again)
    return text, values


def is_accepted(text):
    promtool = shutil.which("promtool")
    if promtool is None:
        skip("promtool accepts the text", "promtool is not installed")
        return
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60,
                          check=False)
    check(done.returncode == 0 and not done.stderr and not done.stdout, "promtool accepts the text", done)


def is_shown(values):
    """Each metric of the dashboard exists, and each metric is shown."""
    dashboard = json.loads((ROOT / "examples/deploy/grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    names = {name for text in expressions for name in re.findall(r"\b(?:gen_ai_(?:server|client)|tnk_gateway)_\w+", text)}
    have = {series.split("{")[0] for series in values}
    check(names and names <= have, "the dashboard shows what there is", names - have)
    hidden = {name for name in have if name.startswith("tnk_")} - names
    check(hidden == {"tnk_gateway_build_info", "tnk_gateway_start_time_seconds"}, "and all of it", hidden)
    labels = {label for text in expressions for label in re.findall(r'(\w+)[=!]~?"', text)}
    check(labels == {"gen_ai_request_model", "error_type", "job"}, "by labels that exist", labels)
    places = [tuple(panel["gridPos"].values())[:2] for panel in dashboard["panels"]]
    check(len(set(places)) == len(places) == len({panel["id"] for panel in dashboard["panels"]}),
          "no panel hides another", places)


def main():
    with tempfile.TemporaryDirectory() as folder, local(TNK) as service:
        needs_the_admin_key(service)
        text, values = counts(service, folder)
        is_accepted(text)
        is_shown(values)
    plan()


main()
