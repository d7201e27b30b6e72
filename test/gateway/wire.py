# SPDX-License-Identifier: MIT
"""Requests exactly as they are written, over HTTP/1.1 and HTTP/2.

Headers are a list of pairs, so that they can be repeated or malformed. Nothing is
added to them but the length of a body.
"""
import http.client
import socket
import struct

DIGITS = {format(code, f"0{n}b"): digit for digit, (code, n) in
          {**{str(i): (i, 5) for i in range(3)}, **{str(i): (0x16 + i, 6) for i in range(3, 10)}}.items()}
STATIC = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}
DATA, HEADERS, PRIORITY, RST, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9


def dial(url):
    host, port = url.split("/")[2].split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def head1(method, path, headers, length=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"] + [f"{k}: {v}" for k, v in headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def answer1(peer, method="POST"):
    """The status, or 0 if the connection ends without one."""
    answer = http.client.HTTPResponse(peer, method=method)
    try:
        answer.begin()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return 0


def http1(url, method, path, headers, body=b""):
    with dial(url) as peer:
        peer.sendall(head1(method, path, headers, len(body)) + body)
        return answer1(peer, method)


def frame(kind, flags, stream, data):
    return struct.pack("!I", len(data))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + data


def number(n, bits, first):
    most = (1 << bits) - 1
    if n < most:
        return bytes([first | n])
    out, n = [first | most], n - most
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + [n])


def packed(headers):
    """Without a table and without Huffman's code."""
    return b"".join(b"\0" + b"".join(number(len(text), 7, 0) + text for text in
                                     (name.encode("latin-1"), value.encode("latin-1")))
                    for name, value in headers)


def status_in(block):
    """The first field of a response is its status; no table may be used."""
    while block and block[0] & 0xe0 == 0x20:  # the size of the table
        block = block[1:]
    if block[0] & 0x80:
        return STATIC[block[0] & 0x7f]
    n, text = block[1] & 0x7f, block[2:2 + (block[1] & 0x7f)]
    if not block[1] & 0x80:
        return int(text)
    bits, digits, code = "".join(format(b, "08b") for b in text[:n]), "", ""
    for bit in bits:
        code += bit
        if code in DIGITS:
            digits, code = digits + DIGITS[code], ""
    return int(digits[:3])


class Http2:
    """A connection with prior knowledge. `peer` is one that is open already."""

    def __init__(self, url, peer=None):
        self.peer = peer or dial(url)
        self.read = self.peer.makefile("rb")
        self.stream = -1
        self.statuses = {}  # of streams that nobody has asked about yet
        # No table, so that statuses can be read.
        self.peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack("!HI", 1, 0)))

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.read.close()
        self.peer.close()

    def head(self, fields, ends=False):
        self.stream += 2
        self.peer.sendall(frame(HEADERS, 4 | ends, self.stream, packed(fields)))
        return self.stream

    def data(self, stream, data, ends=True):
        self.peer.sendall(frame(DATA, int(ends), stream, data))

    def answer(self, stream):
        """The status; 0 if the stream or the connection ends without one."""
        try:
            while stream not in self.statuses:
                head = self.read.read(9)
                if len(head) < 9:
                    return 0
                n, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                data, of = self.read.read(n), int.from_bytes(head[5:9], "big")
                if kind == SETTINGS and not flags & 1:
                    self.peer.sendall(frame(SETTINGS, 1, 0, b""))
                elif kind == HEADERS:  # streams may be answered in any order
                    self.statuses.setdefault(of, status_in(data))
                elif kind == RST:
                    self.statuses.setdefault(of, 0)
                elif kind == GOAWAY:
                    return 0
            return self.statuses.pop(stream)
        except OSError:
            return 0


def fields(method, path, headers):
    return [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path),
            *((name.lower(), value) for name, value in headers)]


def http2(url, method, path, headers, body=b""):
    with Http2(url) as conn:
        stream = conn.head(fields(method, path, headers), not body)
        if body:
            conn.data(stream, body)
        return conn.answer(stream)
