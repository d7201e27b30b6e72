# SPDX-License-Identifier: MIT
"""What compare.py measures with: the stub, TLS in front of it, runs of both
clients in turn, and the table that comes of it."""
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "test", "support"))
from ports import reserve  # noqa: E402
SYSTEM_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
TIMEOUT_S = 300


def wait_for_port(port, process):
    """Until it listens; false if it has ended instead. A busy machine may let it wait for long."""
    end = time.monotonic() + TIMEOUT_S
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        time.sleep(0.01)
    return False


class Stub:
    """`tnk local --stub` on a port of its own."""

    def __init__(self, build, *args, flags=(), certificates=None):
        # The certificate is one of our own making.
        self.trust = ssl.create_default_context(cafile=certificates.bundle) if certificates else None
        if certificates:
            args = [*args, "--tls-cert", certificates.path("crt"), "--tls-key", certificates.path("key")]
        command = [build + "/src/tools/tnk/tnk", "local", "--stub", "--port", "0", "--exit-with-stdin", *args]
        for flag in flags:
            command += ["--flag", flag]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def counts(self):
        with urllib.request.urlopen(self.url + "/api/v1/stub/counts", timeout=60, context=self.trust) as answer:
            return json.load(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Certificates:
    """A private authority, and a server's certificate of it; `bundle` has the
    authority behind the system's ones."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.bundle, self.server = self.path("bundle.pem"), self.path("server.pem")
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        with open(self.path("extensions"), "w") as file:
            # The name is for hitch, which does not survive certificates without one.
            file.write("subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
        self.openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=bench", "-days", "30")
        self.openssl("req", *key, "-keyout", "key", "-out", "request", "-subj", "/CN=127.0.0.1")
        self.openssl("x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                     "-days", "30", "-extfile", "extensions", "-out", "crt")
        self.join(self.server, [self.path("key"), self.path("crt")])
        self.join(self.bundle, [SYSTEM_CERTIFICATES, self.path("ca.pem")])

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder.name, check=True, capture_output=True)

    @staticmethod
    def join(to, names):
        with open(to, "w") as out:
            for name in names:
                with open(name) as file:
                    out.write(file.read())


class Link:
    """The program of test/support/link.h in front of a stub."""

    def __init__(self, build, stub, *words):
        self.process = subprocess.Popen([build + "/bench/bench_link", str(stub.port), *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.url = "%s:%d" % (stub.url.rsplit(":", 1)[0], self.port)

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class NoResumption:
    """nginx in front of a port, which lets nobody resume a TLS session."""

    CONFIG = """
daemon off;
worker_processes 1;
pid %(folder)s/pid;
error_log %(folder)s/log;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path %(folder)s;
  proxy_temp_path %(folder)s;
  fastcgi_temp_path %(folder)s;
  uwsgi_temp_path %(folder)s;
  scgi_temp_path %(folder)s;
  ssl_session_cache off;
  ssl_session_tickets off;
  server {
    listen 127.0.0.1:%(port)d ssl http2 backlog=2048;
    ssl_certificate %(folder)s/crt;
    ssl_certificate_key %(folder)s/key;
    location / {
      proxy_pass http://127.0.0.1:%(to)d;
      proxy_read_timeout 1d;
    }
  }
}
"""

    def __init__(self, certificates, port):
        self.port = reserve()
        self.url = "https://127.0.0.1:%d" % self.port
        config = certificates.path("nginx-%d.conf" % self.port)
        with open(config, "w") as file:
            file.write(self.CONFIG % {"folder": certificates.folder.name, "port": self.port, "to": port})
        command = [find("nginx"), "-c", config, "-e", certificates.path("log")]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not wait_for_port(self.port, self.process):
            sys.exit("nginx does not start: " + " ".join(command))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Squid:
    """squid, which lets a client have so many tunnels."""

    CONFIG = """
http_port 127.0.0.1:%(port)d
pid_filename none
access_log none
cache_log %(folder)s/log
cache_store_log none
cache deny all
shutdown_lifetime 0 seconds
acl many maxconn %(tunnels)d
http_access deny many
http_access allow localhost
http_access deny all
"""

    def __init__(self, tunnels):
        self._folder = tempfile.TemporaryDirectory()
        # It gives up root's rights.
        os.chmod(self._folder.name, 0o777)
        port = reserve()
        self.url = "http://127.0.0.1:%d" % port
        config = os.path.join(self._folder.name, "conf")
        with open(config, "w") as file:
            file.write(self.CONFIG % {"folder": self._folder.name, "port": port, "tunnels": tunnels})
        command = [find("squid"), "-N", "-f", config]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not wait_for_port(port, self.process):
            sys.exit("squid does not start: " + " ".join(command))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self._folder.cleanup()


class Store:
    """nginx with files of these sizes, over plain HTTP: `urls` has their names."""

    CONFIG = """
daemon off;
worker_processes 1;
pid %(folder)s/pid;
error_log %(folder)s/log;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %(folder)s;
  proxy_temp_path %(folder)s;
  fastcgi_temp_path %(folder)s;
  uwsgi_temp_path %(folder)s;
  scgi_temp_path %(folder)s;
  sendfile on;
  server {
    listen 127.0.0.1:%(port)d;
    root %(folder)s/files;
  }
}
"""

    def __init__(self, sizes):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        # Its workers are of another user.
        os.chmod(self.folder, 0o755)
        os.mkdir(os.path.join(self.folder, "files"))
        for name, size in sizes.items():
            with open(os.path.join(self.folder, "files", name), "wb") as file:
                file.truncate(size)
        port = reserve()
        self.urls = {name: "http://127.0.0.1:%d/%s" % (port, name) for name in sizes}
        config = os.path.join(self.folder, "conf")
        with open(config, "w") as file:
            file.write(self.CONFIG % {"folder": self.folder, "port": port})
        command = [find("nginx"), "-c", config, "-e", os.path.join(self.folder, "log")]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not wait_for_port(port, self.process):
            sys.exit("nginx does not start: " + " ".join(command))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self._folder.cleanup()


def find(program):
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def need(program, package):
    """Whether the program is there; else it says what to install."""
    found = find(program) is not None
    if not found:
        print("left out, for %s is missing: apt install %s" % (program, package))
    return found


class Lab:
    """Runs both clients in turn and collects rows for the table."""

    def __init__(self, build, python, rounds, quick):
        self.build, self.python, self.rounds, self.quick = build, python, rounds, quick
        self.rows = []
        self.ca_file = None
        self.proxy = None
        self._certificates = None
        self._folder = tempfile.TemporaryDirectory()
        self.version = None
        if python:
            self.version = subprocess.run([python, "-c", "import tinker; print(tinker.__version__)"],
                                          capture_output=True, text=True, check=True).stdout.strip()

    def stub(self, *args, flags=(), tls=False):
        return Stub(self.build, *args, flags=flags, certificates=self.certificates() if tls else None)

    def certificates(self):
        if self._certificates is None:
            self._certificates = Certificates()
            self.ca_file = self._certificates.bundle
        return self._certificates

    def server_context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificates().server)
        return context

    def no_resumption(self, port):
        return NoResumption(self.certificates(), port)

    def link(self, stub, *words):
        return Link(self.build, stub, *words)

    def file(self, name, text):
        path = os.path.join(self._folder.name, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def commands(self, name, theirs, *args, extra=()):
        """The same for both; `extra` is for ours alone."""
        commands = {"tnk": ["%s/bench/bench_%s" % (self.build, name), *args, *extra]}
        if self.python:
            commands["official"] = [self.python, os.path.join(HERE, theirs), *args]
        return commands

    def environment(self, url):
        env = {**os.environ, "TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-bench",
               "TINKER_TELEMETRY": "0", "no_proxy": "*", "PYTHONWARNINGS": "ignore"}
        if self.proxy:
            env.update(no_proxy="", https_proxy=self.proxy)
        if url.startswith("https:"):
            env["SSL_CERT_FILE"] = self.ca_file
        return env

    def run(self, command, url):
        result = subprocess.run(command, env=self.environment(url), capture_output=True, text=True, timeout=TIMEOUT_S)
        if result.returncode != 0:
            sys.exit("%s\n%s%s" % (" ".join(command), result.stdout, result.stderr[-2000:]))
        return json.loads(result.stdout.strip().splitlines()[-1])

    def medians(self, commands, url, measure=None, rounds=None):
        """In turn; of every number the median over the rounds."""
        measure = measure or self.run
        results = {name: [] for name in commands}
        for _ in range(rounds or self.rounds):
            for name, command in commands.items():
                results[name].append(measure(command, url))
        return {name: {key: statistics.median(r[key] for r in got if key in r) for key in got[0]
                       if isinstance(got[0][key], (int, float))}
                for name, got in results.items()}

    def row(self, label, results, key, is_more_better=False, target=None, detail=False):
        """Print one line, and keep it; details are not for the table."""
        ours, theirs = results["tnk"].get(key), results.get("official", {}).get(key)
        ratio = None
        if ours and theirs:
            ratio = ours / theirs if is_more_better else theirs / ours
        row = {"label": label, "tnk": ours, "official": theirs, "ratio": ratio,
               "raw": results.get("raw", {}).get(key), "target": target, "detail": detail}
        self.rows.append(row)
        print(line(label, number(ours), number(theirs), times(ratio), number(row["raw"]), target or ""), flush=True)

    def child_cpu(self, command, **options):
        """What a program printed, and the CPU seconds that it used."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(command, capture_output=True, text=True, **options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return result.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    @contextlib.contextmanager
    def running(self, command, url):
        """A client at work; gives the process and what it printed first."""
        process = subprocess.Popen(command, env=self.environment(url), stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()


def number(value):
    if value is None:
        return ""
    if abs(value) >= 100:
        return "{:,.0f}".format(value)
    return "%.3g" % value


def times(ratio):
    return "" if ratio is None else ("%.0fx" if ratio >= 10 else "%.1fx") % ratio


def line(label, *columns):
    return "%-76s" % label + "".join("%11s" % c for c in columns)


def markdown(rows):
    lines = ["| | tnk | official | better by | limit |", "|---|---|---|---|---|"]
    for row in rows:
        if row["detail"]:
            continue
        lines.append("| %s | %s | %s | %s | %s |" % (row["label"], number(row["tnk"]), number(row["official"]),
                                                    times(row["ratio"]), number(row["raw"])))
    return "\n".join(lines)
