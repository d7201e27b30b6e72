#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk gateway --workers: several processes on one port, and their parent.

usage: run_workers.py TNK_COMMAND

Workers and the parent are killed at idle and while requests wait for the service,
which is stopped meanwhile. Output is TAP, see test/support/tap.py.
"""
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from gateway import CLEAN, Client, gateway, local, turns_of
from ports import reserve
from store import SERVER, Store
from tap import check, plan, skip

TNK = sys.argv[1]
ASKERS = 12


def workers_of(g):
    return [int(pid) for pid in pathlib.Path(f"/proc/{g.process.pid}/task/{g.process.pid}/children").read_text().split()]


def is_gone(pid):
    """A process that nobody has waited for counts as gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def until(what):
    while not what():
        threading.Event().wait(0.02)


def labels(g, n):
    """The workers that answer, until there are n. A new connection may reach any."""
    seen = set()
    while len(seen) < n:
        client = Client(g.url)
        try:
            text = client.ask("GET", "/metrics")[1]
            values = set(re.findall(r'^\w+\{worker="(\d+)"[,}]', text, re.M))
            assert len(values) == 1 and not re.search(r"^\w+(\{(?!worker)| )", text, re.M), text
            seen |= values
        except (OSError, http.client.HTTPException):
            pass
        finally:
            client.close()
    return seen


class Asker(threading.Thread):
    """Asks once, and again if the connection fails."""

    def __init__(self, url, name):
        super().__init__()
        self.url, self.name, self.failed, self.status = url, name, 0, None
        self.sent = threading.Event()

    def run(self):
        while self.status is None:
            client = Client(self.url)
            try:
                client.http.connect()
                self.sent.set()
                self.status, self.answer = client.chat(f"{self.name} asks", path=f"/s/{self.name}/v1/chat/completions")
            except (OSError, http.client.HTTPException):
                self.failed += 1
                if self.failed > 200:
                    self.status = "no gateway"
                threading.Event().wait(0.02)
            finally:
                client.close()


def in_progress(url):
    """The requests that wait for a sample, as any worker counts them."""
    client = Client(url)
    text = client.ask("GET", "/metrics")[1]
    client.close()
    worker = re.search(r'worker="(\d+)"', text)[1]
    return worker, int(re.search(r"^tnk_gateway_requests_in_progress\{[^}]*\} (\d+)", text, re.M)[1])


class Waiting:
    """Requests at all workers, which wait as the service is stopped."""

    def __init__(self, g, service, tag, n):
        self.g, self.service = g, service
        service.process.send_signal(signal.SIGSTOP)
        self.askers = [Asker(g.url, f"{tag}{k}") for k in range(n)]
        for asker in self.askers:
            asker.start()
        counts = {}
        while sum(counts.values()) < n:
            counts.update([in_progress(g.url)])

    def go_on(self):
        self.service.process.send_signal(signal.SIGCONT)
        for asker in self.askers:
            asker.join()


def refused(service, store, folder):
    shared = ("--record", store.url("x"))
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen(1)
    dead = store.url("x").replace(f":{store.port}", f":{reserve()}")
    for what, options, part, status in (
            ("no record", ("--workers", 2), "a record that processes can share", 2),
            ("a file", ("--workers", 2, "--record", f"{folder}/x.jsonl"), "cannot share a file", 2),
            ("no worker", ("--workers", 0, *shared), "--workers", 2),
            ("too many", ("--workers", 257, *shared), "--workers", 2),
            ("a port that is taken", ("--workers", 2, *shared, "--port", taken.getsockname()[1]),
             "address already in use", 1),
            ("a host that is not here", ("--workers", 2, *shared, "--host", "192.0.2.1", "--key", "k"),
             "cannot listen on 192.0.2.1", 1),
            ("no store", ("--workers", 3, "--record", dead), "connection refused", 1)):
        done = subprocess.run(gateway(TNK, service, *options).line, env={**CLEAN, "TINKER_BASE_URL": service.url,
                              "TINKER_API_KEY": "tml-x"}, capture_output=True, text=True)
        check(done.returncode == status and done.stderr.count(part) == 1, f"{what} is refused once", done)
    taken.close()


def one_worker(service, folder):
    """One process may have a file, and continues it."""
    path = pathlib.Path(folder) / "one.jsonl"
    with gateway(TNK, service, "--workers", 1, "--record", path) as g:
        check(Client(g.url).chat("hi")[0] == 200, "one worker serves")
        waiting = Waiting(g, service, "one", 1)
        pid, = workers_of(g)
        os.kill(pid, signal.SIGKILL)
        waiting.go_on()
        check(waiting.askers[0].status == 200 and waiting.askers[0].failed > 0,
              "a worker killed in a request is started again", vars(waiting.askers[0]))
        check(workers_of(g) != [pid], "it is another process")
    check(g.status == 0 and "was killed by signal 9; it is started again" in g.said, "that is reported", g.said)
    check(len(turns_of(path)) >= 2, "the record is continued")


def share_port(service, store):
    with gateway(TNK, service, "--workers", 2, "--record", store.url("port")) as g:
        done = subprocess.run([*gateway(TNK, service, "--workers", 2, "--record", store.url("port2")).line, "--port",
                               g.url.rsplit(":", 1)[1]], env=CLEAN, capture_output=True, text=True)
        check(done.returncode == 1 and "address already in use" in done.stderr,
              "workers of two parents do not share a port", done)


def killed_at_idle(service, store, folder):
    log = pathlib.Path(folder) / "idle.log"
    with gateway(TNK, service, "-v", "--workers", 4, "--record", store.url("idle"), log=log) as g:
        check(labels(g, 4) == {"1", "2", "3", "4"}, "four workers answer on one port")
        before = workers_of(g)
        check(len(before) == 4, "they are processes of their own", before)
        for pid in before[:2]:
            os.kill(pid, signal.SIGKILL)
        check(labels(g, 4) == {"1", "2", "3", "4"}, "four answer again after two were killed")
        until(lambda: len(workers_of(g)) == 4)
        check(len(set(workers_of(g)) & set(before)) == 2, "the other two go on", (before, workers_of(g)))
        # An orderly end of one is a restart of it.
        os.kill(before[3], signal.SIGTERM)
        until(lambda: is_gone(before[3]))
        labels(g, 4)
        last = workers_of(g)
    check(g.status == 0, "the parent ends with status 0", g.said)
    check(all(map(is_gone, last)), "no worker is left")
    check(all(f"tnk worker {k}: GET /metrics: 200" in g.said for k in range(1, 5)), "the log names the worker", g.said)


def killed_in_requests(service, store):
    with gateway(TNK, service, "--workers", 2, "--record", store.url("busy")) as g:
        waiting = Waiting(g, service, "busy", ASKERS)
        os.kill(workers_of(g)[0], signal.SIGKILL)
        waiting.go_on()
        check({a.status for a in waiting.askers} == {200}, "all are answered after a worker was killed",
              [a.status for a in waiting.askers])
    check(g.status == 0, "the end is orderly", g.said)


def ended_in_requests(service, store):
    with gateway(TNK, service, "--workers", 2, "--record", store.url("end")) as g:
        workers = workers_of(g)
        waiting = Waiting(g, service, "end", ASKERS)
        g.process.send_signal(signal.SIGTERM)
        waiting.go_on()
        # Leaving the block would be a second signal.
        g.process.wait(60)
        done = [(a.status, a.failed) for a in waiting.askers]
        check(done == [(200, 0)] * ASKERS, "requests in progress are finished after SIGTERM", done)
    check(g.status == 0 and all(map(is_gone, workers)), "then all ends with status 0", g.said)


def is_connected(pid, port):
    """Whether a process has a connection to the port."""
    wanted = f":{port:04X}"
    try:
        rows = [line.split() for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
        sockets = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(wanted)}
        return any(os.readlink(fd) in sockets for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def ended_at_the_start(service, store):
    """A worker that is started again cannot serve, as the service is stopped."""
    port = int(service.url.rsplit(":", 1)[1])
    for what, begun in (("has just begun", lambda _: True), ("waits for the service", lambda pid: is_connected(pid, port))):
        with gateway(TNK, service, "--workers", 2, "--record", store.url("start")) as g:
            before = workers_of(g)
            service.process.send_signal(signal.SIGSTOP)
            os.kill(before[0], signal.SIGKILL)
            until(lambda: set(workers_of(g)) - set(before))
            new, = set(workers_of(g)) - set(before)
            until(lambda: begun(new))
            g.process.send_signal(signal.SIGTERM)
            until(lambda: is_gone(new))
            service.process.send_signal(signal.SIGCONT)
            g.process.wait(60)
        check(g.status == 0, f"the parent ends with status 0 while a worker {what}", (g.status, g.said))


def ended_at_once(service, store):
    with gateway(TNK, service, "--workers", 2, "--record", store.url("twice")) as g:
        workers = workers_of(g)
        waiting = Waiting(g, service, "twice", 2)
        g.process.send_signal(signal.SIGTERM)
        # The first signal is handled when nobody listens any more.
        until(lambda: not listens(g))
        g.process.send_signal(signal.SIGTERM)
        status = g.process.wait()
        service.process.send_signal(signal.SIGCONT)
        for asker in waiting.askers:
            asker.failed = 1000
            asker.join()
    check(status == 1 and "the workers are killed" in g.said, "a second signal kills, and the status says so", g.said)
    check(all(map(is_gone, workers)), "no worker is left after it")


def listens(g):
    try:
        socket.create_connection(("127.0.0.1", int(g.url.rsplit(":", 1)[1]))).close()
        return True
    except OSError:
        return False


def orphans(service, store):
    """Workers end when the parent is killed, and finish what they have begun."""
    for what, n in (("at idle", 0), ("in requests", ASKERS)):
        with gateway(TNK, service, "--workers", 3, "--record", store.url("orphans")) as g:
            workers = workers_of(g)
            waiting = Waiting(g, service, f"orphan{n}", n)
            g.process.kill()
            g.process.wait()
            until(lambda: not listens(g))
            waiting.go_on()
            done = [(a.status, a.failed) for a in waiting.askers]
            check(done == [(200, 0)] * n, f"requests are finished when the parent is killed {what}", done)
            until(lambda: all(map(is_gone, workers)))
            check(True, f"the workers end when the parent is killed {what}")


def main():
    if SERVER is None or not pathlib.Path("/proc/self/task").exists():
        skip("several workers", "there is no valkey-server or redis-server, or no /proc")
        plan()
        return
    with tempfile.TemporaryDirectory() as folder:
        with Store(folder) as store, local(TNK) as service:
            refused(service, store, folder)
            one_worker(service, folder)
            share_port(service, store)
            killed_at_idle(service, store, folder)
            killed_in_requests(service, store)
            ended_in_requests(service, store)
            ended_at_the_start(service, store)
            ended_at_once(service, store)
            orphans(service, store)
    plan()


main()
