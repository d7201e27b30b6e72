#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A gateway that checks the certificates of its clients.

usage: run_certificates.py TNK_COMMAND

Each row is a certificate, and what happens with it over both versions of HTTP: the
handshake fails, or the request gets a status. Keys are bound to certificates in each
of the four ways. Output is TAP, see test/support/tap.py.
"""
import http.client
import json
import pathlib
import ssl
import subprocess
import sys
import tempfile

from authority import Authority
from gateway import CLEAN, gateway, local
from tap import check, plan
from wire import Http2, dial, fields

TNK = sys.argv[1]
ADMIN = "canary-admin"
CHAT = "/v1/chat/completions"
HI = json.dumps({"max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}).encode()
REFUSED = 0
URI = "spiffe://example/agent-1"


class Client:
    """Requests with one certificate, or with none."""

    def __init__(self, url, ca, pair=None, latest=ssl.TLSVersion.MAXIMUM_SUPPORTED):
        self.url, self.pair = url, pair
        self.context = ssl.create_default_context(cafile=ca)
        self.context.maximum_version = latest
        if pair:
            self.context.load_cert_chain(*pair)

    def connect(self, protocol, session=None):
        self.context.set_alpn_protocols([protocol])
        return self.context.wrap_socket(dial(self.url), server_hostname="127.0.0.1", session=session)

    def ask(self, key, method="POST", path=CHAT, body=HI):
        """The status, and the text of the body."""
        try:
            peer = self.connect("http/1.1")
            head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n"
            with peer:
                peer.sendall(head.encode() + body)
                answer = http.client.HTTPResponse(peer)
                answer.begin()
                return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as why:
            return REFUSED, repr(why)

    def ask2(self, key):
        try:
            with Http2(self.url, self.connect("h2")) as conn:
                stream = conn.head(fields("POST", CHAT, [("x-api-key", key)]))
                conn.data(stream, HI)
                return conn.answer(stream)
        except OSError:
            return REFUSED

    def new_key(self, **options):
        status, text = self.ask(ADMIN, path="/tnk/sessions", body=json.dumps(options).encode())
        check(status != REFUSED, "the administrator is served", text)
        return status, json.loads(text)


class Place:
    """Certificates of all kinds, and the options of a gateway for them."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.log = self.folder / "log"
        self.ca = Authority(folder)
        other = Authority(folder, "other")
        self.server = self.ca.sign("server", "IP:127.0.0.1")
        one = {"subject": "/CN=agent-1", "alternative": f"DNS:agent-1.example,URI:{URI}"}
        self.one = self.ca.sign("one", **one, usage="clientAuth")
        self.ten = self.ca.sign("ten", "DNS:agent-1.example.org,URI:spiffe://example/agent-10", subject="/CN=agent-10")
        self.short = self.ca.sign("short", "DNS:agent-1,URI:spiffe://example/agent", subject="/CN=agent")
        names = "/CN=agent-1.example/CN=" + URI.replace("/", "\\/")
        self.named = self.ca.sign("named", "DNS:agent-1.example.evil", subject=names)
        self.revoked = self.ca.sign("revoked", **one)
        self.bad = {
            "no certificate": (None, "a client has no certificate"),
            "one of another authority": (other.sign("foreign", **one), "not signed by a trusted authority"),
            "an expired one": (self.ca.sign("expired", **one, days=-1), "it has expired on "),
            "one that is not yet valid": (self.ca.sign("future", **one, since=1), "it is not valid before "),
            "a revoked one": (self.revoked, "it has been revoked"),
            "one for servers": (self.ca.sign("wrong", **one, usage="serverAuth"), "it is not meant for clients"),
        }
        self.crl = self.ca.revoke(self.revoked)

    def options(self, *more):
        return ("--tls-cert", self.server[0], "--tls-key", self.server[1], "--client-ca", self.ca.ca, "--client-crl",
                self.crl, "--admin-key", ADMIN, "--record", self.folder / "record", *more)

    def serve(self, service, *more):
        command = gateway(TNK, service, "-v", *self.options(*more), log=self.log)
        return command

    def client(self, url, pair=None, **options):
        return Client(url, self.ca.ca, pair, **options)


def refusals(place, why):
    return [line for line in place.log.read_text().splitlines() if why in line]


def try_bad(place, url, key, is_optional):
    """The certificates that nothing is served to, and what the log says of them. A client of TLS 1.3 ends its
    handshake before the server has seen its certificate."""
    for latest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with place.client(url, place.one, latest=latest).connect("h2") as peer:
            tls = peer.version()
        for what, (pair, why) in place.bad.items():
            client = place.client(url, pair, latest=latest)
            wanted = 200 if is_optional and pair is None else REFUSED
            n = len(refusals(place, why))
            for version, got in (("1.1", client.ask(key)[0]), ("2", client.ask2(key))):
                check(got == wanted, f"{what}: {wanted or 'no connection'}, HTTP/{version} over {tls}", got)
            said = refusals(place, why)[n:]
            named = all(pair is None or "CN=agent-1, was refused" in line for line in said)
            check(len(said) == (0 if wanted else 2) and named,
                  f"{what}: the log says why", place.log.read_text()[-2000:])


def try_bound(place, url, keys, is_optional):
    """Keys that are bound to a certificate, with each good certificate."""
    for binding, key in keys.items():
        rows = [("its certificate", place.one, 200, ""), ("another one", place.ten, 403, "another client certificate"),
                ("shorter names", place.short, 403, "another client certificate"),
                ("names in the wrong place", place.named, 403, "another client certificate")]
        if is_optional:
            rows.append(("no certificate", None, 403, "the connection has none"))
        for what, pair, wanted, part in rows:
            client = place.client(url, pair)
            status, text = client.ask(key)
            check(status == wanted and part in text, f"a key for {binding} with {what}: {wanted}, HTTP/1.1",
                  (status, text))
            status = client.ask2(key)
            check(status == wanted, f"the same over HTTP/2: {wanted}", status)


def used(client):
    keys = json.loads(client.ask(ADMIN, "GET", "/tnk/sessions", b"")[1])["data"]
    return {key["id"]: key["used"]["requests"] for key in keys}


def required(place, service):
    """Returns the keys, which are bound."""
    names = {"its hash": "SHA256:" + place.ca.fingerprint(place.one), "its host": "dns:AGENT-1.example",
             "its URI": f"URI:{URI}", "its common name": "CN:agent-1"}
    with place.serve(service) as g:
        one = place.client(g.url, place.one)
        free = one.new_key(session="free")[1]["key"]
        made = {what: one.new_key(session="bound", certificate=name)[1] for what, name in names.items()}
        check(made["its hash"]["certificate"] == "sha256:" + place.ca.fingerprint(place.one).replace(":", "").lower(),
              "the answer has the certificate of the key", made)
        keys = {what: key["key"] for what, key in made.items()}
        try_bad(place, g.url, free, is_optional=False)
        check(one.ask(free)[0] == one.ask2(free) == 200, "a key without a certificate")
        try_bound(place, g.url, keys, is_optional=False)
        check(set(used(one).values()) == {2}, "refused requests use nothing", used(one))
        for name in ("agent-1", "sha256:12", "CN:", "CN:" + 300 * "x", "CN:a\n", 7):
            status, text = one.new_key(certificate=name)
            check(status == 400 and "certificate" in text["error"]["message"], f"{str(name)[:20]!r} is no certificate",
                  text)
        first = one.connect("http/1.1")
        first.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        first.recv(1000)
        again = one.connect("http/1.1", first.session)
        check(not again.session_reused, "a session is not resumed, so each certificate is checked")
        first.close()
        again.close()
        said = subprocess.run([TNK, "gateway", "keys", "create", "--url", g.url, "--certificate", "CN:x"],
                              env={**CLEAN, "SSL_CERT_FILE": str(place.ca.ca), "TNK_GATEWAY_ADMIN_KEY": ADMIN,
                                   "TNK_CERT_FILE": str(place.ten[0]), "TNK_KEY_FILE": str(place.ten[1])},
                              capture_output=True, text=True)
        check(said.returncode == 0 and "CN:x" in said.stdout, "the command for keys has a certificate", said)
    log = place.log.read_text()
    check(f'{CHAT}: 200, session bound' in log and 'certificate "CN=agent-1"' in log
          and '/tnk/sessions: 200, certificate "CN=agent-10"' in log
          and f'{CHAT}: 403, certificate "CN=agent-10"' in log
          and "was created for session bound, for the certificate sha256:" in log,
          "the log names the certificates", log[-3000:])
    check(ADMIN not in log and free not in log, "the log has no key")
    return keys, free


def restarted(place, service, keys, free):
    with place.serve(service, "--client-optional") as g:
        try_bad(place, g.url, free, is_optional=True)
        try_bound(place, g.url, keys, is_optional=True)
    with gateway(TNK, service, "--admin-key", ADMIN, "--record", place.folder / "record", "--tls-cert", place.server[0],
                 "--tls-key", place.server[1]) as g:
        client = place.client(g.url, place.one)
        check(client.ask(free)[0] == 200, "without --client-ca a key without a certificate works")
        for what, key in keys.items():
            status, text = client.ask(key)
            check(status == 403 and "the connection has none" in text, f"without --client-ca a key for {what} does not",
                  text)
        status, text = client.new_key(certificate="CN:a")
        check(status == 400 and "--client-ca" in text["error"]["message"], "nor can one be created", text)


def refused(place, service):
    none, tls = place.folder / "none", place.options()[:4]
    junk = place.folder / "junk"
    junk.write_text("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n")
    for options, part in ((("--client-ca", place.ca.ca), "--client-ca needs --tls-cert"),
                          ((*tls, "--client-crl", place.crl), "need --client-ca"),
                          ((*tls, "--client-optional"), "need --client-ca"),
                          ((*tls, "--client-ca", none), f"cannot read the client authorities in {none}"),
                          ((*tls, "--client-ca", junk), f"cannot parse a certificate in {junk}"),
                          ((*tls, "--client-ca", place.ca.ca, "--client-crl", none),
                           f"cannot read the revocation list in {none}"),
                          ((*tls, "--client-ca", place.ca.ca, "--client-crl", junk),
                           f"cannot parse a revocation list in {junk}")):
        try:
            with gateway(TNK, service, *options):
                said = "it serves"
        except RuntimeError as why:
            said = str(why)
        check(part in said, f"refused: {part[:40]}", said)


def main():
    with tempfile.TemporaryDirectory() as folder, local(TNK) as service:
        place = Place(folder)
        keys, free = required(place, service)
        restarted(place, service, keys, free)
        refused(place, service)
    plan()


main()
