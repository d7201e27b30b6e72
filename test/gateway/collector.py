# SPDX-License-Identifier: MIT
"""A collector of OpenTelemetry, and a reader of what it gets.

The fields are those of opentelemetry-proto's definitions. test/interop/otlp
reads the same requests with the published package.
"""
import gzip
import http.server
import ssl
import struct
import threading

KINDS = {1: "internal", 2: "server", 3: "client"}


# ---- Protobuf

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """{number: [values]} of one message."""
    out, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 in (1, 5):
            n = 8 if tag & 7 == 1 else 4
            value = int.from_bytes(data[at:at + n], "little")
            at += n
        else:
            assert tag & 7 == 2, f"wire type {tag & 7}"
            n, at = varint(data, at)
            value = data[at:at + n]
            assert len(value) == n, "a message ends in the middle"
            at += n
        out.setdefault(tag >> 3, []).append(value)
    return out


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def any_value(data):
    m = fields(data)
    if 1 in m:
        return m[1][0].decode()
    if 2 in m:
        return bool(m[2][0])
    if 3 in m:
        return signed(m[3][0])
    if 4 in m:
        return double(m[4][0])
    return [any_value(value) for value in fields(m[5][0]).get(1, [])]


def attributes(pairs):
    out = {}
    for pair in pairs:
        m = fields(pair)
        key = m[1][0].decode()
        assert key not in out, f"{key} twice"
        out[key] = any_value(m[2][0])
    return out


def span_of(data):
    m = fields(data)
    return {"trace": m[1][0].hex(), "id": m[2][0].hex(), "parent": m[4][0].hex() if 4 in m else None,
            "name": m[5][0].decode(), "kind": KINDS[m[6][0]], "start": m[7][0], "end": m[8][0],
            "attributes": attributes(m.get(9, [])), "flags": m[16][0],
            "events": [fields(event)[2][0].decode() for event in m.get(11, [])],
            "is_error": 15 in m and fields(m[15][0])[3][0] == 2}


def points_of(data):
    """The points of a metric: (attributes, value) or (attributes, (count, sum, buckets))."""
    m, out = fields(data), []
    for point in m.get(1, []):
        p = fields(point)
        if 6 in p and isinstance(p[6][0], bytes):
            counts = struct.unpack(f"<{len(p[6][0]) // 8}Q", p[6][0])
            assert len(p[7][0]) + 8 == len(p[6][0]), "bounds and buckets"
            out.append((attributes(p.get(9, [])), (p[4][0], double(p[5][0]), counts)))
        else:
            out.append((attributes(p.get(7, [])), signed(p[6][0])))
    return out


def read(data):
    """The resource and the items of a request."""
    (resource_items,) = fields(data)[1]
    m = fields(resource_items)
    (scope,) = m[2]
    assert fields(fields(scope)[1][0])[1] == [b"tnk"], "the scope"
    return attributes(fields(m[1][0]).get(1, [])), fields(scope).get(2, [])


# ---- The server

class Collector:
    """Keeps what comes, as long as the with-block. `status` is what it answers;
    `answers` are statuses for the first requests."""

    def __init__(self, port=0, certificate=None):
        self.spans, self.metrics, self.requests, self.resources, self.bodies = [], {}, [], [], []
        self.status, self.answers, self.headers = 200, [], {}
        self.lock = threading.Condition()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                collector.take(self)

            def log_message(self, *what):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        # A bare system does not know the name localhost.
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.server.server_address[1]}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        return self

    def __exit__(self, *what):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def take(self, handler):
        body = handler.rfile.read(int(handler.headers["content-length"]))
        if handler.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        with self.lock:
            self.requests.append((handler.path, dict(handler.headers)))
            status = self.answers.pop(0) if self.answers else self.status
            if status == 200:
                self.keep(handler.path, body)
            self.lock.notify_all()
        handler.send_response(status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/x-protobuf")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def keep(self, path, body):
        resource, items = read(body)
        self.resources.append(resource)
        self.bodies.append((path, body))
        if path.endswith("/v1/traces"):
            self.spans += map(span_of, items)
            return
        for item in items:
            m = fields(item)
            (data,) = [m[number][0] for number in (5, 7, 9) if number in m]
            self.metrics[m[1][0].decode()] = points_of(data)

    def wait(self, is_there, timeout_s=60):
        """Wait until is_there() is true, which is tried after each request."""
        with self.lock:
            return self.lock.wait_for(is_there, timeout_s)
