# SPDX-License-Identifier: MIT
"""What a request says, apart from what differs from run to run, and whether
two clients said the same."""

import collections
import json
import re
import urllib.parse

# Headers that matter or are the same for every client: protocol §2.1. The
# rest says what a client is made of; README.md lists it.
COMPARED = (
    "accept", "content-type", "content-encoding", "x-api-key", "x-stainless-package-version",
    "x-stainless-retry-count", "x-stainless-read-timeout", "x-sdk-version", "x-sdk-method",
    "x-tinker-sampling-backpressure", "x-tinker-request-type", "x-tinker-request-iteration",
    "x-tinker-weights-access-token", "x-extra",
)
# Their presence alone: the values are random or measured. Of keys also whether
# an earlier request had the same.
PRESENT = ("x-idempotency-key", "x-tinker-create-promise-roundtrip-time")
BACKGROUND = ("session_heartbeat", "telemetry")
ZSTD = b"\x28\xb5\x2f\xfd"


def name_ids(text):
    """Of the same length: texts may be inside of something that has lengths."""
    if isinstance(text, bytes):
        return re.sub(rb"session-[0-9a-f]{16}", b"session-0000000000000000", text)
    return re.sub(r"session-[0-9a-f]{16}", "session-0000000000000000", text)


def label_keys(requests):
    """The same requests, with headers in small letters and words in place of
    idempotency keys: a key that comes again is the key of a repeat."""
    seen, out = set(), []
    for method, path, headers, body in requests:
        headers = {k.lower(): v for k, v in (headers.items() if isinstance(headers, dict) else headers)}
        key = headers.get("x-idempotency-key")
        if key not in (None, "present", "again"):
            headers["x-idempotency-key"] = "again" if key in seen else "present"
            seen.add(key)
        out.append((method, path, headers, body))
    return out


def plain(value):
    """Numbers that are equal are written equally; request ids are alike."""
    if isinstance(value, dict):
        return {k: "ID" if k == "request_id" else plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, float) and value == int(value) and abs(value) < 2**53:
        return int(value)
    return name_ids(value) if isinstance(value, str) else value


class Reader:
    """`decode` makes a dict of a ForwardBackwardRequest, `inflate` undoes
    zstd; None where that is not possible."""

    def __init__(self, decode, inflate):
        self.decode = decode
        self.inflate = inflate

    def body(self, headers, body):
        if body.startswith(ZSTD):
            if self.inflate is None:
                return "compressed"
            body = self.inflate(body)
        if headers.get("content-type") == "application/x-protobuf":
            return self.decode(body)
        return json.loads(body) if body else None

    def form(self, request):
        """(path, everything compared)"""
        method, path, headers, body = request
        kept = {name: headers[name] for name in COMPARED if name in headers}
        if "x-stainless-read-timeout" in kept:
            kept["x-stainless-read-timeout"] = float(kept["x-stainless-read-timeout"])
        for name in PRESENT:
            if name in headers:
                kept[name] = headers[name] if name == "x-idempotency-key" else "present"
        path, _, query = path.partition("?")
        form = {"request": f"{method} {name_ids(path)}", "headers": plain(kept),
                "query": plain(dict(urllib.parse.parse_qsl(query, True, True))),
                "body": plain(self.body(headers, body))}
        return path.split("/api/v1/")[-1], form

    def forms(self, requests, unordered):
        """The calls in their order and the polls, of which only the first for
        each result does not depend on time."""
        calls, polls = [], []
        batched = False
        for request in label_keys(requests):
            path, form = self.form(request)
            if path in BACKGROUND:
                continue
            if path == "retrieve_futures":
                if not batched:
                    polls.append(form)
                batched = True
            elif path == "retrieve_future":
                if form["headers"].get("x-tinker-request-iteration") == "0":
                    polls.append(form)
            else:
                calls.append(form)
        key = lambda form: (form["request"], json.dumps(form, sort_keys=True))
        return sorted(calls, key=key) if unordered else calls, sorted(polls, key=key)


def differences(a, b, where=""):
    """Lines that name each field in which two forms differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b), key=str):
            there = f"{where}.{key}" if where else str(key)
            if key not in a:
                yield f"{there}: only tnk: {b[key]!r:.150}"
            elif key not in b:
                yield f"{there}: only official: {a[key]!r:.150}"
            else:
                yield from differences(a[key], b[key], there)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{where}[{i}]")
    elif a != b or isinstance(a, bool) != isinstance(b, bool):
        yield f"{where}: official {a!r:.150}, tnk {b!r:.150}"


def compare_lists(a, b):
    if [f["request"] for f in a] != [f["request"] for f in b]:
        names = [collections.Counter(f["request"] for f in side) for side in (a, b)]
        for missing, text in ((names[0] - names[1], "only official"), (names[1] - names[0], "only tnk")):
            for name, n in missing.items():
                yield f"{name}: {n} {text}"
        if names[0] == names[1]:
            order = [[f["request"] for f in side] for side in (a, b)]
            yield f"order: official {order[0]}, tnk {order[1]}"
        return
    for x, y in zip(a, b):
        for line in differences(x, y):
            yield f"{x['request']}: {line}"


LEFT_OUT = "it holds its default, and servers exist that refuse what they do not know"
# Differences in every case, with their reasons; calls.json has those of one.
EVERYWHERE = {
    "/finish: headers.x-stainless-read-timeout: official 60, tnk 2":
        "closing waits two seconds at most for this answer",
    **{f"{call}: body.{member}: only official: {value}": LEFT_OUT for call, member, value in (
        ("/create_model", "optimizer_config", "{'type': 'adamw'}"),
        ("/save_weights_for_sampler", "kind", "'snapshot'"),
        ("/asample", "topk_sample_logprobs", "0"),
        ("/asample", "prompt_alt_tokens_k", "0"),
        ("/asample", "record_stability_info", "False"))},
}


# The official client asks for these before any question about what the service
# keeps; tnk does so only when its key is refused, or for a session.
CONFIGURATION = ("/client/config", "/client/dynamic_config")


def asked_anyway(ours):
    return any(form["request"].endswith(CONFIGURATION) for form in ours)


def without(forms, wanted):
    """What is left when each of these requests is taken out, the last one of
    its kind; and those that were not there."""
    left, missing = list(forms), []
    for text in wanted:
        at = next((i for i in reversed(range(len(left))) if left[i]["request"].endswith(text)), None)
        if at is None:
            missing.append(text)
        else:
            del left[at]
    return left, missing


def compare(case, ours, theirs, reader):
    """Lines; none when the two sent the same."""
    unordered = case.get("unordered", False)
    a, b = reader.forms(theirs, unordered), reader.forms(ours, unordered)
    calls, missing = without(a[0], case.get("only_official", {}))
    if not asked_anyway(b[0]):
        calls = [form for form in calls if not form["request"].endswith(CONFIGURATION)]
    more, absent = without(b[0], case.get("only_tnk", {}))
    a, b = (calls, a[1]), (more, b[1])
    lines = list(compare_lists(a[0], b[0])) + list(compare_lists(a[1], b[1]))
    known = case.get("differs", {})
    every = [*known, *EVERYWHERE]
    found = [line for line in lines if not any(text in line for text in every)]
    unused = [text for text in known if not any(text in line for line in lines)]
    return found + [f"no longer differs: {text}" for text in unused + missing + absent]
