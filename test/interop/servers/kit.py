# SPDX-License-Identifier: MIT
"""What run.py starts: the local server, the link, servers of other people, and
the load; each in a process of its own, in a folder of the run."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from ports import reserve  # noqa: E402, F401, for those who import this

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
TIMEOUT_S = 300


class Missing(Exception):
    """What is not installed here."""


def need(program, package):
    found = shutil.which(program, path=PATH)
    if not found:
        raise Missing("%s (Debian's package %s)" % (program, package))
    return found


def answers(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


class Process:
    """Starts a command, and ends it however the run ends."""

    def __init__(self, *command, log, piped=False, env=None):
        self.log = open(log, "ab")
        self.process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE if piped else self.log, stderr=self.log, text=True, env=env)

    def wait_for(self, port):
        """Until it listens or has ended. A busy machine may let it wait for long."""
        end = time.monotonic() + TIMEOUT_S
        while not answers(port):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("does not listen:\n" + self.tail())
            time.sleep(0.05)
        return self

    def tail(self):
        with open(self.log.name, errors="replace") as file:
            return file.read()[-2000:]

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM, patience=5):
        if self.process.poll() is None:
            self.send(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
        self.log.close()


class Stub(Process):
    """The local server's stub."""

    def __init__(self, tnk, log, *args):
        super().__init__(tnk, "local", "--stub", "--port", 0, "--exit-with-stdin", *args, log=log, piped=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def n_accepted(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + "/api/v1/stub/counts", timeout=60) as answer:
            return json.load(answer)["accepted"]


class Link(Process):
    """The program of test/support/link.h."""

    def __init__(self, program, log, port, *words):
        super().__init__(program, port, *words, log=log, piped=True)
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rsplit(":", 1)[1])

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Load(Process):
    def __init__(self, program, log, url, environment, *args):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("TINKER_") and not name.lower().endswith("_proxy")}
        env.update(TINKER_BASE_URL=url, TINKER_API_KEY="tml-servers", **environment)
        super().__init__(program, *args, log=log, piped=True, env=env)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the load does not begin: " + self.tail())

    def result(self, seconds):
        out, _ = self.process.communicate(timeout=seconds)
        if self.process.returncode != 0 or not out.strip():
            raise RuntimeError("the load ended with %d: %s" % (self.process.returncode, self.tail()))
        return json.loads(out.strip().splitlines()[-1])


class Certificate:
    """One that is its own authority, for 127.0.0.1; `bundle` is what a client
    trusts, `pem` has the key too."""

    def __init__(self, folder):
        self.key, self.crt = folder / "server.key", folder / "server.crt"
        self.pem, self.bundle = folder / "server.pem", folder / "server.crt"
        subprocess.run([need("openssl", "openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self.key, "-out", self.crt,
                        "-subj", "/CN=localhost", "-days", "30",
                        "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
                       check=True, capture_output=True)
        self.pem.write_text(self.key.read_text() + self.crt.read_text())
        # Servers give up root's rights before they read it.
        for path in (self.key, self.pem):
            path.chmod(0o644)
