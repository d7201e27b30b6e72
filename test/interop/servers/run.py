#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The client through servers of other people: see README.md.

    run.py BUILD_DIR [--samples N] [--only TEXT]

Ends with "N passed, N failed[, N skipped]".
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from fronts import Haproxy, Hitch, Nghttpx, Nginx, Squid, Tinyproxy
from kit import Certificate, Link, Load, Missing, Stub

# All but the dead link: what they make together.
SAMPLES = 20000


class Setting:
    """`disturb` is done to the front every so many seconds while the load runs."""

    def __init__(self, name, front, disturb=None, every=0.7, in_flight=500, stub=(), **limits):
        self.name, self.front, self.disturb, self.every = name, front, disturb, every
        self.in_flight, self.stub, self.limits = in_flight, stub, limits


LOW_NGINX = dict(connections=110, more="keepalive_requests 100; keepalive_timeout 5s; http2_max_concurrent_streams 10;")
LOW_HAPROXY = dict(timeout=5, globally="tune.h2.max-concurrent-streams 10", more="maxconn 50")
LOW_NGHTTPX = dict(more=["--frontend-http2-max-concurrent-streams=10", "--frontend-keep-alive-timeout=5s",
                         "--worker-frontend-connections=50"])

SETTINGS = [
    Setting("nginx", Nginx, in_flight=2000),
    Setting("nginx, HTTP/1.1", Nginx, http2=False),
    Setting("nginx, low limits", Nginx, **LOW_NGINX),
    Setting("nginx, low limits, HTTP/1.1", Nginx, http2=False, **LOW_NGINX),
    Setting("nginx, reloaded", Nginx, "reload"),
    Setting("nginx, restarted", Nginx, "restart", every=2),
    Setting("haproxy", Haproxy, in_flight=2000),
    Setting("haproxy, HTTP/1.1", Haproxy, alpn="http/1.1"),
    Setting("haproxy, low limits", Haproxy, **LOW_HAPROXY),
    Setting("haproxy, 50 connections to the server", Haproxy, server="maxconn 50"),
    Setting("haproxy, reloaded", Haproxy, "reload"),
    Setting("hitch", Hitch, in_flight=2000),
    Setting("hitch, restarted", Hitch, "restart", every=2),
    Setting("nghttpx", Nghttpx, in_flight=2000),
    Setting("nghttpx, low limits", Nghttpx, **LOW_NGHTTPX),
    Setting("nghttpx, restarted", Nghttpx, "restart", every=2),
    Setting("squid", Squid),
    Setting("squid, tunnels", Squid, behind=Nginx),
    Setting("squid, 50 tunnels", Squid, behind=Nginx, connections=50),
    Setting("tinyproxy", Tinyproxy, in_flight=80),
    Setting("tinyproxy, 20 tunnels", Tinyproxy, behind=Hitch, connections=20, in_flight=200),
]


class Run:
    def __init__(self, args, folder):
        self.folder = pathlib.Path(folder)
        # Servers give up root's rights.
        self.folder.chmod(0o777)
        self.tnk = args.build + "/src/tools/tnk/tnk"
        self.has_http2 = "nghttp2" in subprocess.run([self.tnk, "version"], capture_output=True, text=True,
                                                     check=True).stdout
        self.load = args.build + "/test/interop/load"
        self.link = args.build + "/test/link/link"
        self.certificate = Certificate(self.folder)
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.lock = threading.Lock()

    def tell(self, outcome, name, text):
        with self.lock:
            self.counts[outcome] += 1
            print("%-8s %s: %s" % (outcome, name, text), flush=True)

    def attempt(self, name, run, *args):
        try:
            self.tell("passed", name, run(*args))
        except Missing as missing:
            self.tell("skipped", name, "not installed: %s" % missing)
        except Exception:  # pylint: disable=broad-except
            self.tell("failed", name, traceback.format_exc())


def disturb_while(process, front, setting):
    n = 0
    began = time.monotonic()
    while process.poll() is None:
        time.sleep(0.05)
        if setting.disturb and time.monotonic() - began > setting.every * (n + 1) and n < 8:
            getattr(front, setting.disturb)()
            n += 1
    return n


def check(result, n_samples, n_steps, n_made):
    if result["failed"]:
        raise RuntimeError("%d failed, the first: %s" % (result["failed"], result["text"]))
    # The training client is one more.
    wanted = n_samples + 2 * n_steps + 1
    may = wanted + result["retries"] + result["resubmits"]
    if result["double_settles"] or not wanted <= n_made <= may:
        raise RuntimeError("the server has accepted %d, not %d to %d: %s" % (n_made, wanted, may, result))


def check_versions(run, front):
    """What the server has written down of the versions that it was spoken to in."""
    seen = front.versions()
    if seen is None:
        return ""
    # Training has connections of HTTP/1.1 in any case.
    is_offered = run.has_http2 and front.limits.get("http2", True)
    wanted = "HTTP/2.0" if is_offered else "HTTP/1.1"
    if wanted not in seen or not is_offered and len(seen) > 1:
        raise RuntimeError("spoken to in %s, not in %s" % (seen, wanted))
    return ", " + wanted


def through(run, setting, n_samples):
    """The load through one front."""
    n_steps = 20 if setting.disturb else 6
    stub = Stub(run.tnk, run.folder / "stub.log", "--latency-ms", 300, "--stub-spread-ms", 300, *setting.stub)
    front = load = None
    try:
        front = setting.front(run, stub.port, **setting.limits)
        load = Load(run.load, run.folder / "load.log", front.url, front.environment, "--samples", n_samples,
                    "--in-flight", setting.in_flight, "--steps", n_steps)
        timer = threading.Timer(120 + n_samples / 50, load.process.kill)
        timer.start()
        n_disturbed = disturb_while(load.process, front, setting)
        timer.cancel()
        result = load.result(1)
        check(result, n_samples, n_steps, stub.n_accepted())
        return "%d samples in %.1f s, %d connections, %d repeats%s%s" % (
            n_samples, result["wall_s"], result["connections"], result["retries"], check_versions(run, front),
            ", %s %d times" % (setting.disturb + ("ed" if setting.disturb[-1] != "e" else "d"), n_disturbed)
            if setting.disturb else "")
    finally:
        for process in (load, front, stub):
            if process:
                process.stop()


def dead_link(run):
    """A connection that dies without a word while a step is under way."""
    stub = Stub(run.tnk, run.folder / "stub.log", "--latency-ms", 500)
    link = load = None
    try:
        link = Link(run.link, run.folder / "link.log", stub.port, "delay 5")
        load = Load(run.load, run.folder / "load.log", link.url, {}, "--samples", 1, "--steps", 6)
        time.sleep(1.2)
        link.tell("deaf")
        result = load.result(120)
        if result["failed"] or result["most_step_s"] > 20:
            raise RuntimeError("a step took %.1f s; %s" % (result["most_step_s"], result["text"]))
        return "the step under way took %.1f s" % result["most_step_s"]
    finally:
        for process in (load, link, stub):
            if process:
                process.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="in all (%d)" % SAMPLES)
    parser.add_argument("--jobs", type=int, default=3, help="settings side by side (3)")
    parser.add_argument("--only", default="", help="part of a setting's name")
    args = parser.parse_args()
    settings = [s for s in SETTINGS if args.only in s.name]
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = Run(args, folder)
        except Missing as missing:
            print("skipped: not installed: %s\n0 passed, 0 failed, 1 skipped" % missing)
            return 0
        n_each = max(args.samples // max(len(settings), 1), 200)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            if args.only in "a dead link":
                pool.submit(run.attempt, "a dead link", dead_link, run)
            for setting in settings:
                pool.submit(run.attempt, setting.name, through, run, setting, n_each)
    counts = run.counts
    print("%d passed, %d failed%s" % (counts["passed"], counts["failed"],
                                      ", %d skipped" % counts["skipped"] if counts["skipped"] else ""))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
