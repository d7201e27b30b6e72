#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A gateway whose record is in Valkey or Redis behind TLS.

usage: run_secure.py TNK_COMMAND

Each row is a server and an address, and what the gateway says about it when it
opens. A certificate that turns bad while the gateway runs holds its requests.
Output is TAP, see test/support/tap.py.
"""
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

from authority import Authority
from gateway import CLEAN, Client, gateway, local
from ports import reserve
from store import SERVER, Store
from tap import check, plan, skip

TNK = sys.argv[1]


def serving(authority, pair, clients="no"):
    return ("--tls-cert-file", pair[0], "--tls-key-file", pair[1], "--tls-ca-cert-file", authority.ca,
            "--tls-auth-clients", clients)


def try_open(service, *options, env=None):
    """What the gateway says if it does not open, or the status of a request."""
    command = gateway(TNK, service, *options)
    command.env.update(env or {})
    try:
        with command as g:
            return Client(g.url).chat("hi")[0]
    except RuntimeError as why:
        return str(why).split("]: ")[-1]


def refused(service, rows):
    for what, options, part in rows:
        said = try_open(service, *options)
        check(isinstance(said, str) and part in said and ("valkeys://" in said or "--record" in said or "valkey://" in said)
              and "canary" not in said,
              f"{what} is refused", said)


def bad_certificates(service, authority, folder):
    """A server with each kind of bad certificate."""
    for name, subject, days, part in (("expired", "IP:127.0.0.1", -1, "certificate has expired on"),
                                      ("other", "DNS:other.example,IP:127.0.0.2", 2,
                                       "certificate is for other.example, 127.0.0.2, not for 127.0.0.1")):
        pair = authority.sign(name, subject, days)
        place = pathlib.Path(folder) / f"data-{name}"
        place.mkdir()
        with Store(place, serving(authority, pair)) as store:
            refused(service, [(f"a certificate ({name})",
                               ("--record", store.secure_url("x"), "--record-ca", authority.ca), part)])
            check(store.ask("EXISTS", "tnk:{x}:lines") == "0", f"nothing is in the store ({name})")


def servers(service, store, authority):
    """A good server, and addresses that do not fit."""
    ca = ("--record-ca", authority.ca)
    check(try_open(service, "--record", store.secure_url("a"), *ca) == 200, "a trusted server is used")
    check(len([line for line in store.lines("a") if '"type":"turn"' in line.replace(" ", "")]) == 1,
          "its turn is recorded", store.lines("a"))
    check(try_open(service, "--record", store.secure_url("b"), env={"SSL_CERT_FILE": str(authority.ca)}) == 200,
          "SSL_CERT_FILE names the authority too")
    done = subprocess.run([TNK, "gateway", "--datums", store.secure_url("a"), "--record-ca", authority.ca], env=CLEAN,
                          capture_output=True, text=True)
    check(done.returncode == 0 and len(done.stdout.splitlines()) == 1, "the record is exported over TLS", done)
    plain_port = store.secure_url("x").replace(f":{store.tls_port}", f":{store.port}")
    tls_port = store.url("x").replace(f":{store.port}", f":{store.tls_port}")
    none = store.secure_url("x").replace(f":{store.tls_port}", f":{reserve()}")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        mute = store.secure_url("x").replace(f":{store.tls_port}", f":{silent.getsockname()[1]}")
        refused(service, [
            ("an unknown authority", ("--record", store.secure_url("x")), "not signed by a trusted authority"),
            ("a missing file of authorities", ("--record", store.secure_url("x"), "--record-ca", "/nonexistent.pem"),
             "cannot use the trusted certificates in /nonexistent.pem"),
            ("a server without TLS", ("--record", plain_port, *ca), "a server without TLS begins with valkey://"),
            ("a server with TLS at a plain address", ("--record", tls_port), "begins with valkeys://"),
            ("no server", ("--record", none, *ca), "connection refused"),
            ("a silent server", ("--record", mute, *ca), "took too long"),
            ("a wrong password", ("--record", store.secure_url("x", "canary2"), *ca),
             "the user or the password was rejected"),
            ("a plain address with an authority", ("--record", store.url("x"), *ca), "need a record at valkeys://"),
            ("half a client certificate", ("--record", store.secure_url("x"), "--record-cert", authority.ca),
             "--record-cert and --record-key need each other"),
        ])


def client_certificates(service, authority, pair, folder):
    place = pathlib.Path(folder) / "data-clients"
    place.mkdir()
    mine = authority.sign("client", "DNS:client")
    with Store(place, serving(authority, pair, "yes")) as store:
        options = ("--record", store.secure_url("x"), "--record-ca", authority.ca)
        refused(service, [("a missing client certificate", options, "client certificate")])
        status = try_open(service, *options, "--record-cert", mine[0], "--record-key", mine[1])
        check(status == 200, "a client certificate is sent", status)


def turns_bad(service, store, authority, good, expired):
    """While the certificate is bad, requests wait and nothing is recorded."""
    answers = []
    log = pathlib.Path(store.folder) / "turns.log"
    with gateway(TNK, service, "--record", store.secure_url("turns"), "--record-ca", authority.ca, log=log) as g:
        check(Client(g.url).chat("hi")[0] == 200, "a record begins")
        before = store.lines("turns")
        store.kill()
        store.tls = serving(authority, expired)
        store.start()
        asker = threading.Thread(target=lambda: answers.append(Client(g.url).chat("more")[0]))
        asker.start()
        while "certificate has expired" not in log.read_text():
            asker.join(0.05)
        check(not answers and store.lines("turns") == before, "nothing is answered with a bad certificate", answers)
        store.kill()
        store.tls = serving(authority, good)
        store.start()
        asker.join()
    check(answers == [200], "the request is answered with a good one", answers)
    check("the store answers again" in g.said, "the log says that the store is back", g.said)
    check(g.status == 0 and "canary" not in g.said, "the password is not shown", g.said)


def main():
    if SERVER is None:
        skip("a shared record over TLS", "there is no valkey-server or redis-server")
        plan()
        return
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(folder)
        good = authority.sign("good", "IP:127.0.0.1")
        try:
            store = Store(folder, serving(authority, good)).__enter__()
        except RuntimeError:
            skip("a shared record over TLS", "the server has no TLS")
            plan()
            return
        with local(TNK) as service:
            servers(service, store, authority)
            bad_certificates(service, authority, folder)
            client_certificates(service, authority, good, folder)
            turns_bad(service, store, authority, good, authority.sign("bad", "IP:127.0.0.1", -1))
        store.kill()
    plan()


main()
