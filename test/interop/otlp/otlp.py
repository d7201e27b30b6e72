#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tnk gateway exports is read by the published definitions of OTLP.

    python3 otlp.py --tnk BUILD/src/tools/tnk/tnk --venv FOLDER

PyPI's opentelemetry-proto is put into the environment, which is made if it is
missing. Without PyPI all is skipped. Each request must have no unknown field,
must be the same when it is written again, and must hold what our own reader
(test/gateway/collector.py) reads.
"""
import argparse
import pathlib
import sys

TEST = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TEST / "support"), str(TEST / "gateway")]
from own_venv import enter_or_skip  # noqa: E402
from tap import check, plan  # noqa: E402


def fields_of(message):
    """All messages below one, itself included."""
    yield message
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        for below in (value if descriptor.is_repeated else [value]):
            yield from fields_of(below)


def value_of(value):
    which = value.WhichOneof("value")
    if which == "array_value":
        return [value_of(item) for item in value.array_value.values]
    return getattr(value, which)


def attributes(pairs):
    return {pair.key: value_of(pair.value) for pair in pairs}


def span_of(span):
    kinds = {span.SPAN_KIND_SERVER: "server", span.SPAN_KIND_CLIENT: "client"}
    return {"trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex() or None,
            "name": span.name, "kind": kinds[span.kind], "start": span.start_time_unix_nano,
            "end": span.end_time_unix_nano, "attributes": attributes(span.attributes), "flags": span.flags,
            "events": [event.name for event in span.events],
            "is_error": span.status.code == span.status.STATUS_CODE_ERROR}


def points_of(metric):
    kind = metric.WhichOneof("data")
    data = getattr(metric, kind)
    if kind != "gauge" and data.aggregation_temporality != 2:
        check(False, "a cumulative metric", metric)
    if kind == "histogram":
        return [(attributes(p.attributes), (p.count, p.sum, tuple(p.bucket_counts))) for p in data.data_points]
    return [(attributes(p.attributes), p.as_int) for p in data.data_points]


def reads(collector, request, path, items_of):
    """The items of all requests with that path."""
    found = []
    bodies = [body for at, body in collector.bodies if at == path]
    for body in bodies:
        message = request()
        message.ParseFromString(body)
        whole = message.SerializeToString(deterministic=True)
        if len(whole) != len(body):
            check(False, "each field is written as the definitions have it", (body, whole))
        for below in fields_of(message):
            copy = type(below)()
            copy.CopyFrom(below)
            copy.DiscardUnknownFields()
            if copy.ByteSize() != below.ByteSize():
                check(False, "no field is unknown", below)
        found += items_of(message)
    check(bodies and found, f"{path}: {len(bodies)} requests with {len(found)} items")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tnk", type=pathlib.Path, required=True)
    parser.add_argument("--venv", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tnk = args.tnk.resolve()
    enter_or_skip(args.venv, "opentelemetry-proto")
    from collector import Collector
    from gateway import SERVICE_KEY, Client, Command, local
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    with Collector() as collector, local(tnk) as service:
        with Command(tnk, "gateway", "--model", "tnk/byte-lm", "--port", "0", env={
                "TINKER_BASE_URL": service.url, "TINKER_API_KEY": SERVICE_KEY, "OTEL_BSP_SCHEDULE_DELAY": "50",
                "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_RESOURCE_ATTRIBUTES": "a=b"}) as g:
            client = Client(g.url)
            for more in ({}, {"stream": True}, {"n": 3, "temperature": 0.5, "seed": 3}):
                check(client.chat("hi", **more)[0] == 200, f"a chat with {len(more)} settings")
            check(client.chat([])[0] == 400, "an error")
    spans = reads(collector, ExportTraceServiceRequest, "/v1/traces", lambda message: [
        span_of(span) for span in message.resource_spans[0].scope_spans[0].spans])
    check(spans == collector.spans, "the spans are those of our reader", (spans, collector.spans))
    metrics = reads(collector, ExportMetricsServiceRequest, "/v1/metrics", lambda message: [
        (metric.name, points_of(metric)) for metric in message.resource_metrics[0].scope_metrics[0].metrics])
    check(dict(metrics) == collector.metrics, "and the metrics", (metrics, collector.metrics))
    plan()


main()
