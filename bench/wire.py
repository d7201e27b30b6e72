# SPDX-License-Identifier: MIT
"""Groups about the wire: TLS, few connections, distance, narrow links. Each
takes a Lab."""
import contextlib
import os
import statistics
import subprocess
import time

from groups import PROMPT, held_memory, need, sample_args
from lab import Squid

# ---- TLS ---------------------------------------------------------------------


def cpu_s(pid):
    """Of all threads, exactly."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as file:
            total += int(file.read().split()[0])
    return total / 1e9


def n_sockets(pid):
    n = 0
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            n += os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("socket:")
        except FileNotFoundError:
            pass
    return n


def submission(lab, stub, in_flight):
    """From the moment that the clients are made until all samples are with the
    server."""
    def measure(command, url):
        goal = stub.counts()["accepted"] + in_flight
        with lab.running(command, url) as (process, first):
            began = time.monotonic()
            while stub.counts()["accepted"] < goal and process.poll() is None:
                time.sleep(0.02)
            result = {"wall_s": time.monotonic() - began, "cpu_s": cpu_s(process.pid) - first["cpu_s"]}
            time.sleep(1)
            result["connections"] = n_sockets(process.pid)
            return result
    return measure


def submit(lab):
    """What it takes to have 2,000 samples in flight over TLS."""
    in_flight = 50 if lab.quick else 2000
    held = ["--latency-ms", "3600000", "--hold-ms", "3600000"]
    commands = lab.commands("samples", "official.py", *sample_args(in_flight, in_flight, 1))
    for tickets in [True, False]:
        if not tickets and not need("nginx", "nginx"):
            continue
        with contextlib.ExitStack() as stack:
            stub = stack.enter_context(lab.stub(*held, tls=tickets))
            url = stub.url if tickets else stack.enter_context(lab.no_resumption(stub.port)).url
            results = lab.medians(commands, url, submission(lab, stub, in_flight), min(lab.rounds, 3))
        label = "%d samples submitted over TLS, %s" % (in_flight, "tickets" if tickets else "no resumption")
        lab.row("CPU s until " + label, results, "cpu_s", target="<= %s" % ("0.12" if tickets else "0.25"))
        lab.row("seconds until " + label, results, "wall_s", detail=True)
        lab.row("connections for " + label, results, "connections", target="<= 40")


def tls_memory(lab):
    """Held samples over TLS; 2,000 of 10,000 are with the server, the others
    wait."""
    with lab.stub("--latency-ms", "3600000", "--hold-ms", "3600000", tls=True) as stub:
        for in_flight, held in [(50, 50)] if lab.quick else [(1000, 1000), (10000, 2000)]:
            commands = lab.commands("samples", "official.py", *sample_args(in_flight, in_flight, 1, PROMPT))
            results = lab.medians(commands, stub.url, held_memory(lab, stub, in_flight, held),
                                  lab.rounds if in_flight <= 1000 else 1)
            waiting = ", %d waiting" % (in_flight - held) if in_flight > held else ""
            lab.row("memory KiB a sample over TLS: %d held%s" % (held, waiting), results, "kib",
                    target="<= %d" % (3 if waiting else 5))


# ---- through the link --------------------------------------------------------


def far(lab):
    """A round trip of 150 ms."""
    n, in_flight, theirs = (200, 100, 100) if lab.quick else (20000, 2000, 2000)
    commands = lab.commands("samples", "official.py")
    commands["tnk"] += sample_args(n, in_flight, 128)
    if "official" in commands:
        commands["official"] += sample_args(theirs, in_flight, 128)
    for suffix, tls in [("", False), (", TLS", True)]:
        with lab.stub(tls=tls) as stub, lab.link(stub, "delay 75") as link:
            results = lab.medians(commands, link.url, rounds=min(lab.rounds, 3))
        lab.row("samples a second at 150 ms of round trip, %d in flight%s" % (in_flight, suffix), results,
                "per_s", True, target=">= 4000")


def limits(lab):
    """No more than 50 connections; results after 3 s."""
    n = 100 if lab.quick else 2000
    commands = {"tnk": lab.commands("samples", "official.py", *sample_args(n, n, 128))["tnk"]}
    for suffix, tls, target in [("", False, 12), (", TLS", True, 4)]:
        with lab.stub("--latency-ms", "3000", tls=tls) as stub, lab.link(stub, "limit 50 close") as link:
            results = lab.medians(commands, link.url, rounds=min(lab.rounds, 3))
        lab.row("seconds for %d samples of 3 s through 50 connections%s" % (n, suffix), results, "wall_s",
                target="<= %d" % target)
    if need("squid", "squid"):
        tunnels(lab, commands, "seconds for %d samples of 3 s through 50 tunnels of squid, TLS" % n)


def tunnels(lab, commands, label):
    """The same where a proxy grants no more than 50 tunnels."""
    with lab.stub("--latency-ms", "3000", tls=True) as stub, Squid(50) as squid:
        lab.proxy = squid.url
        results = lab.medians(commands, stub.url, rounds=min(lab.rounds, 3))
        lab.proxy = None
    lab.row(label, results, "wall_s", target="<= 4")


def narrow(lab):
    """A pass of about 20 MB, as long as its bytes take."""
    mbit = 200 if lab.quick else 1
    commands = {"tnk": lab.commands("passes", "official_passes.py", "320", "3840", "cross_entropy")["tnk"]}
    with lab.stub() as stub, lab.link(stub, "rate %d" % (mbit * 1000)) as link:
        before = link.tell("counts")["up"]
        result = lab.run(commands["tnk"], link.url)
        n_up = link.tell("counts")["up"] - before
    result["ratio"] = result["wall_ms"] / (n_up * 8 / mbit / 1000)
    lab.row("a pass at %d Mbit/s: its time, in that of the bytes sent" % mbit, {"tnk": result}, "ratio",
            target="<= 1.1")
    result["mb"] = n_up / 1e6
    lab.row("MB sent for it", {"tnk": result}, "mb", detail=True)


def beside(lab):
    """A pass of about 20 MB at 20 Mbit/s and 50 ms of round trip, alone and
    beside 500 held polls."""
    polls, size = (10, ["16", "3840"]) if lab.quick else (500, ["320", "3840"])
    words = ["delay 25", "rate 20000", "queue 65536"]
    latency = ["--latency-ms", "300", "--stub-spread-ms", "300"] if lab.quick else \
        ["--latency-ms", "5000", "--stub-spread-ms", "5000"]
    sent, late = {}, {}
    for suffix, tls in [("", False), (", TLS", True)]:
        with lab.stub(*latency, tls=tls) as stub, lab.link(stub, *words) as link:
            for n in [0, polls]:
                commands = lab.commands("beside", "official_beside.py", str(n), *size)
                results = lab.medians(commands, link.url, rounds=min(lab.rounds, 3))
                for name, result in results.items():
                    sent.setdefault(name, {})[n] = result["sent_ms"]
                    # What a result needs in any case: from the server to here.
                    late[name] = {"ms": result.get("delay_p99_ms", 25) - 25}
        ratios = {name: {"ratio": by[polls] / by[0]} for name, by in sent.items()}
        lab.row("a pass at 20 Mbit/s beside %d held polls: its time, in that of it alone%s" % (polls, suffix), ratios,
                "ratio", target="<= 1.05")
        lab.row("what the pass delays results by meanwhile, ms, p99%s" % suffix, late, "ms", target="<= 100")


def dead_at(lab, stub, link, latency_s):
    """All connections die while the result of a pass is waited for: until it is
    there, less what it would have taken."""
    def measure(command, url):
        start = link.tell("counts")["up"]
        with subprocess.Popen(command, env=lab.environment(url), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as process:
            # The pass has gone up, and its poll is held.
            while link.tell("counts")["up"] < start + 200000 or stub.counts()["held"] == 0:
                time.sleep(0.05)
            began = time.monotonic()
            time.sleep(0.5)
            link.tell("deaf")
            process.wait()
            return {"s": max(time.monotonic() - began - latency_s, 0)}
    return measure


def dead(lab):
    """A connection that dies without a word under a training step."""
    commands = lab.commands("passes", "official_passes.py", "64", "1024", "cross_entropy")
    latency_s = 1 if lab.quick else 5
    for suffix, tls in [("", False)] if lab.quick else [("", False), (", TLS", True)]:
        latency = ["--latency-ms", str(latency_s * 1000), "--hold-ms", "60000"]
        with lab.stub(*latency, tls=tls) as stub, lab.link(stub, "delay 5") as link:
            results = lab.medians(commands, link.url, dead_at(lab, stub, link, latency_s), 1)
        lab.row("seconds that a silently dead connection costs a training step%s" % suffix, results, "s",
                target="<= 20")


GROUPS = {"submit": submit, "tls_memory": tls_memory, "far": far, "limits": limits, "narrow": narrow,
          "beside": beside, "dead": dead}
