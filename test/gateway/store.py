# SPDX-License-Identifier: MIT
"""A server of Valkey or Redis for tests of a shared record.

TNK_TEST_STORE_SERVER: the command that starts the server, with arguments before its options if it
needs some. Without it, valkey-server or redis-server is used, as far as one is installed."""
import os
import shlex
import shutil
import socket
import subprocess
import time

from ports import reserve

PASSWORD = "canary/of the store"
IN_URL = "canary%2Fof%20the%20store"
FOUND = shutil.which("valkey-server") or shutil.which("redis-server")
SERVER = shlex.split(os.environ.get("TNK_TEST_STORE_SERVER", "")) or ([FOUND] if FOUND else None)


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
            [*SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
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
        print(f"# the store: {self.version()}")
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

    def version(self):
        """The name and version of the server, which the log of a run shows."""
        about = dict(line.split(":", 1) for line in self.ask("INFO", "server").splitlines() if ":" in line)
        name = about.get("server_name", "redis")
        return f"{name} {about.get(f'{name}_version')}"

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
