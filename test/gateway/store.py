# SPDX-License-Identifier: MIT
"""A server of Valkey or Redis for tests of a shared record."""
import shutil
import socket
import subprocess
import time

from ports import reserve

PASSWORD = "canary/of the store"
IN_URL = "canary%2Fof%20the%20store"
SERVER = shutil.which("valkey-server") or shutil.which("redis-server")


class Store:
    """A server with an append-only file, as long as the with-block. The file is written before the
    answer, which is enough if the server is killed; only a power failure would need more. With
    `tls`, more arguments, it also listens on `tls_port`."""

    def __init__(self, folder, tls=()):
        self.folder = folder
        self.port = reserve()
        self.tls = tls
        self.tls_port = reserve() if tls else None

    def url(self, name, password=IN_URL):
        return f"valkey://:{password}@127.0.0.1:{self.port}/{name}"

    def secure_url(self, name, password=IN_URL):
        return f"valkeys://:{password}@127.0.0.1:{self.tls_port}/{name}"

    def start(self):
        tls = ["--tls-port", str(self.tls_port), *map(str, self.tls)] if self.tls else []
        self.process = subprocess.Popen(
            [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
             "--appendonly", "yes", "--appendfsync", "no", "--requirepass", PASSWORD, *tls],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                if self.ask("PING") == "PONG":
                    return
            except (OSError, ValueError):
                time.sleep(0.05)
        raise RuntimeError(f"{SERVER} does not start")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *what):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait(60)

    def ask(self, *words):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            file = s.makefile("rwb")
            for command in (("AUTH", PASSWORD), words):
                file.write(b"*%d\r\n" % len(command))
                for word in command:
                    data = str(word).encode()
                    file.write(b"$%d\r\n%s\r\n" % (len(data), data))
                file.flush()
                answer = read_reply(file)
            return answer

    def lines(self, name):
        """The lines of a record; what was sent twice is read once. Scripts of the
        server are writer 0."""
        seen = {}
        for id_, (w, writer, n, count, l, line) in self.ask("XRANGE", f"tnk:{{{name}}}:lines", "-", "+"):
            assert (w, n, l) == ("w", "n", "l")
            seen.setdefault((writer, int(count)) if writer != "0" else id_, line)
        return list(seen.values())


def read_reply(file):
    line = file.readline()
    kind, rest = line[:1], line[1:-2].decode()
    if kind == b"$":
        return None if rest == "-1" else file.read(int(rest) + 2)[:-2].decode(errors="surrogateescape")
    if kind == b"*":
        return [read_reply(file) for _ in range(int(rest))]
    if kind in b"+:" and kind:
        return rest
    raise ValueError(line)
