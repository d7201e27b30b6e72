# SPDX-License-Identifier: MIT
"""Servers of other people in front of the local one: how each is set up and
started. A front has a URL, what the client's environment needs, and the ways in
which it can be disturbed."""
import os
import signal

from kit import Process, need, reserve


class Front:
    program = package = None

    def __init__(self, run, target, **limits):
        self.run, self.target, self.limits = run, target, limits
        self.port = reserve()
        self.config = run.folder / ("%s-%d.conf" % (self.program, self.port))
        self.log = run.folder / ("%s-%d.log" % (self.program, self.port))
        self.path = need(self.program, self.package)
        self.environment = {"SSL_CERT_FILE": str(run.certificate.bundle)}
        self.start()

    @property
    def url(self):
        return "https://127.0.0.1:%d" % self.port

    def start(self):
        self.config.write_text(self.text())
        self.process = Process(*self.command(), log=self.log)
        self.process.wait_for(self.port)

    def stop(self):
        self.process.stop(signal.SIGTERM)

    def restart(self):
        self.stop()
        self.start()

    def text(self):
        return ""

    def versions(self):
        """Of HTTP, that it was spoken to in; None: it does not say."""
        return None


class Nginx(Front):
    program, package = "nginx", "nginx"

    def command(self):
        return [self.path, "-c", self.config, "-p", self.run.folder, "-e", self.log]

    def text(self):
        limits, folder = self.limits, self.run.folder
        temp = "".join("%s_temp_path %s;\n" % (name, folder / name)
                       for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return """
daemon off;
worker_processes 1;
pid %s/nginx-%d.pid;
error_log %s;
events { worker_connections %d; }
http {
  log_format protocols "$server_protocol";
  access_log %s/protocols-%d.log protocols;
  client_max_body_size 64m;
  %s
  %s
  server {
    listen 127.0.0.1:%d ssl%s;
    ssl_certificate %s;
    ssl_certificate_key %s;
    location / { proxy_pass http://127.0.0.1:%d; }
  }
}
""" % (folder, self.port, self.log, limits.get("connections", 768), folder, self.port, temp,
            limits.get("more", ""), self.port, " http2" if limits.get("http2", True) else "",
            self.run.certificate.crt, self.run.certificate.key, self.target)

    def reload(self):
        self.process.send(signal.SIGHUP)

    def versions(self):
        # What ends with an error of TLS or a reset has none.
        text = (self.run.folder / ("protocols-%d.log" % self.port)).read_text()
        return {line for line in text.split("\n") if line.startswith("HTTP/")}


class Haproxy(Front):
    program, package = "haproxy", "haproxy"

    def command(self):
        return [self.path, "-W", "-db", "-f", self.config]

    def text(self):
        limits = self.limits
        return """
global
  %s
defaults
  mode http
  timeout connect 5s
  timeout client %ds
  timeout server 50s
frontend clients
  bind 127.0.0.1:%d ssl crt %s alpn %s
  %s
  default_backend stub
backend stub
  server stub 127.0.0.1:%d %s
""" % (limits.get("globally", ""), limits.get("timeout", 50), self.port, self.run.certificate.pem,
            limits.get("alpn", "h2,http/1.1"), limits.get("more", ""), self.target, limits.get("server", ""))

    def reload(self):
        self.process.send(signal.SIGUSR2)


class Hitch(Front):
    program, package = "hitch", "hitch"

    def command(self):
        rights = ["--user=nobody", "--group=nogroup"] if os.geteuid() == 0 else []
        return [self.path, *rights, "--daemon=off", "--quiet", "--backlog=2048",
                "--backend=[127.0.0.1]:%d" % self.target, "--frontend=[127.0.0.1]:%d" % self.port,
                *self.limits.get("more", []), self.run.certificate.pem]


class Nghttpx(Front):
    program, package = "nghttpx", "nghttp2-proxy"

    def command(self):
        return [self.path, "--conf=/dev/null", "--frontend=127.0.0.1,%d" % self.port,
                "--backend=127.0.0.1,%d" % self.target, "--accesslog-file=/dev/null", "--workers=1",
                *self.limits.get("more", []), self.run.certificate.key, self.run.certificate.crt]


class Proxy(Front):
    """One that clients know of. Behind it is the local server, or, with
    `behind`, a front with TLS, to which it makes tunnels."""

    def __init__(self, run, target, behind=None, **limits):
        self.behind = behind(run, target) if behind else None
        super().__init__(run, target, **limits)
        name = "https_proxy" if self.behind else "http_proxy"
        self.environment[name] = "http://127.0.0.1:%d" % self.port

    @property
    def url(self):
        return self.behind.url if self.behind else "http://127.0.0.1:%d" % self.target

    def stop(self):
        super().stop()
        if self.behind:
            self.behind.stop()


class Squid(Proxy):
    program, package = "squid", "squid"

    def command(self):
        return [self.path, "-N", "-f", self.config]

    def text(self):
        return """
http_port 127.0.0.1:%d
pid_filename none
access_log none
cache_log %s
cache_store_log none
cache deny all
shutdown_lifetime 0 seconds
acl many maxconn %d
http_access deny many
http_access allow localhost
http_access deny all
""" % (self.port, self.log, self.limits.get("connections", 100000))


class Tinyproxy(Proxy):
    program, package = "tinyproxy", "tinyproxy"

    def command(self):
        return [self.path, "-d", "-c", self.config]

    def text(self):
        return """
Port %d
Listen 127.0.0.1
Timeout 600
MaxClients %d
LogLevel Error
""" % (self.port, self.limits.get("connections", 100))
