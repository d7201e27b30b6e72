#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tnk gateway exports by OTLP, to a collector of our own.

usage: run_otlp.py TNK_COMMAND SOURCE_ROOT

Output is TAP, see test/support/tap.py.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from collector import Collector
from gateway import CLEAN, SERVICE_KEY, Client, Command, local
from tap import check, plan

TNK, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PROMPT, OTLP_KEY = "a secret prompt", "canary-of-the-collector"


def gateway(service, collector, *args, **variables):
    env = {"TINKER_BASE_URL": service.url, "TINKER_API_KEY": SERVICE_KEY, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    if collector:
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
    return Command(TNK, "gateway", "--model", "tnk/byte-lm", "--port", "0", *args, env={**env, **variables})


def ours(spans):
    return [span for span in spans if span["kind"] == "server"]


def only(collector, n=1):
    """The spans of n requests, which have then come. They are taken."""
    check(collector.wait(lambda: len(ours(collector.spans)) >= n), f"{n} spans come", collector.spans)
    spans, collector.spans = collector.spans, []
    return spans


def is_a_span(span, name, **wanted):
    found = {key: span["attributes"].get(key.replace("__", ".")) for key in wanted}
    check(span["name"] == name and found == wanted, f"the span {name}", (span, wanted))
    check(0 < span["end"] - span["start"] < 60e9 and abs(span["end"] / 1e9 - time.time()) < 60, "and its times", span)


def each_api(g, collector):
    client = Client(g.url, authorization="Bearer agents:run-1")
    for path, body, name in (
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": PROMPT}], "temperature": 0.5}, "chat"),
            ("/v1/completions", {"prompt": PROMPT}, "text_completion"),
            ("/v1/messages", {"messages": [{"role": "user", "content": PROMPT}]}, "chat"),
            ("/v1/responses", {"input": PROMPT}, "chat")):
        limit = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
        status, answer = client.post(path, {"model": "theirs", limit: 20, **body})
        check(status == 200, path, answer)
        spans = only(collector)
        (span,) = ours(spans)
        usage = answer["usage"]
        is_a_span(span, f"{name} m", gen_ai__operation__name=name, gen_ai__provider__name="tinker",
                  gen_ai__request__model="m", gen_ai__response__model="m", gen_ai__response__id=answer["id"],
                  gen_ai__request__max_tokens=20,
                  gen_ai__usage__input_tokens=usage.get("prompt_tokens", usage.get("input_tokens")),
                  gen_ai__usage__output_tokens=usage.get("completion_tokens", usage.get("output_tokens")),
                  gen_ai__request__temperature=body.get("temperature"), gen_ai__conversation__id="run-1",
                  http__request__method="POST", http__route=path, http__response__status_code=200,
                  gen_ai__request__stream=None, error__type=None, tnk__weights__version=1)
        check(span["attributes"]["gen_ai.response.finish_reasons"] in (["stop"], ["length"]), "why it ended", span)
        check(span["parent"] is None and span["flags"] == 0x101 and not span["is_error"], "it begins a trace", span)
        # Making the sampler is an operation without a request.
        (below,) = [other for other in spans if other["parent"]]
        check(below["name"] == "sample" and below["trace"] == span["trace"] and below["parent"] == span["id"] and
              {"sent", "result"} <= set(below["events"]) and span["start"] <= below["start"] <= below["end"],
              "the operation of the service is below", below)


def streams(g, collector):
    status, _ = Client(g.url, authorization="Bearer agents").chat(PROMPT, stream=True)
    check(status == 200, "a stream")
    (span,) = ours(only(collector))
    is_a_span(span, "chat m", gen_ai__request__stream=True, http__response__status_code=200)


def continues_traces(g, collector):
    for flags, n in (("01", 1), ("00", 0)):
        client = Client(g.url, authorization="Bearer agents", traceparent=f"00-{TRACE}-{PARENT}-{flags}")
        check(client.chat(PROMPT + flags)[0] == 200, f"traceparent with {flags}")
        if n:
            spans = only(collector)
            (span,) = ours(spans)
            check(span["trace"] == TRACE and span["parent"] == PARENT and span["flags"] == 0x301, "is continued", span)
            check(len(spans) == 2 and all(other["trace"] == TRACE for other in spans), "and the operation too", spans)
    # The one that is not sampled would have come before this one.
    for header in ("00-nonsense", f"00-{TRACE}-{PARENT}", f"00-{'0' * 32}-{PARENT}-01"):
        client = Client(g.url, authorization="Bearer agents", traceparent=header)
        check(client.chat(PROMPT + header)[0] == 200, f"traceparent {header[:12]}")
        (span,) = ours(only(collector))
        check(span["trace"] != TRACE and span["parent"] is None, "begins another trace", span)


def errors(g, collector):
    client = Client(g.url, authorization="Bearer agents")
    check(client.chat([])[0] == 400, "a wrong request")
    (span,) = ours(only(collector))
    is_a_span(span, "chat m", http__response__status_code=400, error__type="400", gen_ai__usage__input_tokens=None,
              gen_ai__response__id=None)
    check(not span["is_error"], "is the client's fault", span)
    # Requests of other kinds.
    check(Client(g.url).ask("GET", "/v1/models")[0] == 401 and client.ask("GET", "/v1/models")[0] == 200 and
          client.ask("GET", "/v1/messages")[0] == 405 and client.post("/tnk/reward", {})[0] == 403 and
          client.post("/v1/messages/x", {})[0] == 404 and
          client.post("/v1/messages/count_tokens", {"model": "m", "messages": [{"role": "user", "content": "x"}]})[0]
          == 200 and client.chat(PROMPT + "!")[0] == 200, "other requests")
    check(len(ours(only(collector))) == 1, "have no span")


def refused(g, collector):
    """Requests for samples that are refused before they are read: so many at most, each with a trace of its own."""
    names = {"/v1/chat/completions": "chat m", "/v1/completions": "text_completion m",
             "/s/run-1/v1/messages/": "chat m"}
    for path, name in names.items():
        client = Client(g.url, traceparent=f"00-{TRACE}-{PARENT}-01")
        check(client.post(path, {})[0] == 401, f"{path} without a key")
        (span,) = ours(only(collector))
        is_a_span(span, name, http__response__status_code=401, error__type="401", gen_ai__conversation__id=None,
                  http__route=path.replace("/s/run-1", "").rstrip("/"), gen_ai__response__id=None)
        check(span["trace"] != TRACE and span["parent"] is None and not span["is_error"], "begins a trace", span)
    client = Client(g.url, authorization="Bearer agents:" + 200 * "x")
    check(client.chat("x")[0] == 400, "a wrong session")
    (span,) = ours(only(collector))
    check(span["attributes"]["http.response.status_code"] == 400, "has a span too", span)
    client, began = Client(g.url), time.monotonic()
    for _ in range(300):
        client.post("/v1/messages", {})
    took = time.monotonic() - began
    check(Client(g.url, authorization="Bearer agents").chat(PROMPT + "??")[0] == 200, "a request after a flood")
    served = lambda: [s for s in ours(collector.spans) if s["attributes"]["http.response.status_code"] == 200]
    check(collector.wait(lambda: len(served()) > 0), "has its span", len(collector.spans))
    n = len(ours(collector.spans)) - 1
    check(90 <= n <= 100 + 10 * took + 1, f"{n} of 300 refused requests have one", took)
    collector.spans = []


def service_fails(collector):
    """The service fails once, which is tried again, and always."""
    with local(TNK, "--faults", "503/asample@1") as service, \
            gateway(service, collector, "--name", "m") as g:
        check(Client(g.url).chat(PROMPT)[0] == 200, "the service fails once")
        spans = only(collector)
        (below,) = [span for span in spans if span["kind"] == "client" and span["name"] == "sample"]
        check(below["attributes"]["tnk.retries"] == 1 and "waits" in below["events"] and not below["is_error"],
              "the operation has its retry", below)


def metrics(collector):
    check(collector.wait(lambda: "tnk.gateway.http_requests" in collector.metrics), "metrics come",
          collector.metrics.keys())
    found = collector.metrics
    ((labels, (n, total, _)),) = [point for point in found["gen_ai.server.request.duration"]
                                  if point[0].get("error.type") is None and
                                  point[0]["gen_ai.operation.name"] == "chat"]
    check(labels == {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "tinker", "gen_ai.request.model": "m"} and
          n >= 8 and 0 < total < 60, "the durations of chats", (labels, n, total))
    check({point[0].get("error.type") for point in found["gen_ai.server.request.duration"]} == {None, "400"},
          "and of an error", found["gen_ai.server.request.duration"])
    check({point[0]["gen_ai.token.type"] for point in found["gen_ai.client.token.usage"]} == {"input", "output"} and
          found["gen_ai.server.time_to_first_token"][0][1][0] == 1, "tokens, and the time to the first", found)
    check(found["tnk.gateway.ready"] == [({}, 0)] and found["tnk.otlp.dropped_spans"] == [({}, 0)], "the state", found)


def one_gateway(service, folder):
    with Collector() as collector:
        with gateway(service, collector, "--name", "m", "--key", "agents", "--admin-key", "master", "--record",
                     folder / "record", OTEL_METRIC_EXPORT_INTERVAL="86400000",
                     OTEL_EXPORTER_OTLP_HEADERS=f"x-api-key={OTLP_KEY}", OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
                     OTEL_SERVICE_NAME="mine", OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=a%20b") as g:
            each_api(g, collector)
            streams(g, collector)
            continues_traces(g, collector)
            errors(g, collector)
            refused(g, collector)
            text = Client(g.url, x_api_key="master").ask("GET", "/metrics")[1]
            check(re.search(r"^tnk_gateway_otlp_exported_spans_total [1-9]", text, re.M) and
                  "tnk_gateway_otlp_dropped_spans_total 0" in text, "/metrics counts the spans", text)
        metrics(collector)  # those of the end
        check(g.status == 0 and g.said == "", "nothing is logged", g.said)
        paths = {path for path, _ in collector.requests}
        check(paths == {"/v1/traces", "/v1/metrics"}, "the paths", paths)
        for _, headers in collector.requests:
            if (headers["Content-Type"], headers["Content-Encoding"], headers["x-api-key"]) != (
                    "application/x-protobuf", "gzip", OTLP_KEY):
                check(False, "the headers of a request", headers)
        for resource in collector.resources:
            if (resource["service.name"], resource["deployment.environment.name"]) != ("mine", "a b"):
                check(False, "the resource of a request", resource)
        everything = b"".join(body for _, body in collector.bodies)
        for secret in (PROMPT, SERVICE_KEY, OTLP_KEY, "agents", "master"):
            check(secret.encode() not in everything, f"no {secret} in any request")


def is_flushed_by_a_signal(service):
    """The last span waits for its batch when the signal comes."""
    with Collector() as collector:
        with gateway(service, collector, OTEL_BSP_SCHEDULE_DELAY="86400000") as g:
            check(Client(g.url).chat("hi")[0] == 200, "a request before the end")
        check(len(ours(collector.spans)) == 1 and g.status == 0, "its span comes", collector.spans)


def collector_is_gone(service):
    """Requests are served as before, and one warning is logged."""
    with Collector() as collector:
        url = collector.url
    began = time.monotonic()
    with gateway(service, None, OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_BSP_EXPORT_TIMEOUT="2000",
                 OTEL_BSP_MAX_QUEUE_SIZE="4", OTEL_METRICS_EXPORTER="none",
                 OTEL_EXPORTER_OTLP_HEADERS=f"x-api-key={OTLP_KEY}") as g:
        client = Client(g.url)
        for i in range(20):
            check(client.chat(f"hi {i}")[0] == 200, "a request without a collector")
    check(time.monotonic() - began < 50, "the end does not wait for long")
    lines = g.said.splitlines()
    check(len([line for line in lines if "cannot export to" in line]) == 1 and OTLP_KEY not in g.said,
          "one warning of the outage", g.said)
    check(len([line for line in lines if "the queue is full" in line]) == 1 and len(lines) <= 3,
          "and one of the queue", g.said)


def comes_later(service):
    with Collector() as collector:
        collector.answers = [503, 503]
        with gateway(service, collector, OTEL_METRICS_EXPORTER="none") as g:
            check(Client(g.url).chat("hi")[0] == 200, "a request")
            check(collector.wait(lambda: len(collector.spans) > 0), "is exported at the third attempt")
        check("status 503" in g.said and len(g.said.splitlines()) == 1, "which is logged once", g.said)


def over_tls(service):
    certificate = ROOT / "test/cli/localhost.pem"
    with Collector(certificate=certificate) as collector:
        with gateway(service, collector, OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificate)) as g:
            check(Client(g.url).chat("hi")[0] == 200, "a request")
        check(len(ours(collector.spans)) == 1, "TLS with its certificate", (collector.spans, g.said))
    with Collector(certificate=certificate) as collector:
        with gateway(service, collector, OTEL_BSP_EXPORT_TIMEOUT="500") as g:
            check(Client(g.url).chat("hi")[0] == 200, "a request")
        check(not collector.requests and "cannot export" in g.said, "without it nothing is sent", g.said)


def is_off(service):
    """Nothing is exported without an endpoint, or if it is switched off."""
    with Collector() as collector:
        for variables in ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SDK_DISABLED": "true"},
                          {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_TRACES_EXPORTER": "none",
                           "OTEL_METRICS_EXPORTER": "none"}):
            with gateway(service, None, **variables) as g:
                check(Client(g.url).chat("hi")[0] == 200, f"a request with {len(variables)} variables")
                text = Client(g.url).ask("GET", "/metrics")[1]
                check("otlp" not in text, "no metrics of the export", text)
            check(not collector.requests and g.said == "", "and nothing is exported", (collector.requests, g.said))


def wrong_variables(service):
    for name, value in (("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_HEADERS", OTLP_KEY),
                        ("OTEL_BSP_MAX_QUEUE_SIZE", "many")):
        done = subprocess.run([TNK, "gateway", "--model", "tnk/byte-lm", "--port", "0"], capture_output=True, text=True,
                              env={**CLEAN, "TINKER_BASE_URL": service.url, "TINKER_API_KEY": SERVICE_KEY,
                                   "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", name: value},
                              timeout=60, check=False)
        check(done.returncode == 2 and name in done.stderr and OTLP_KEY not in done.stderr, f"{name} is named",
              done.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        with local(TNK) as service:
            one_gateway(service, pathlib.Path(folder))
            is_flushed_by_a_signal(service)
            collector_is_gone(service)
            comes_later(service)
            over_tls(service)
            is_off(service)
            wrong_variables(service)
        with Collector() as collector:
            service_fails(collector)
    plan()


main()
