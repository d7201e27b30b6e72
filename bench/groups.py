# SPDX-License-Identifier: MIT
"""The groups of measures that compare.py offers. Each takes a Lab."""
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time

from lab import Stub, need

BATCHED = "sample_use_retrieve_futures=true"
MODES = {"single": [], "batched": [BATCHED]}
PROMPT = 128
SETTLE_S = 120


def sample_args(samples, in_flight, tokens, prompt=PROMPT, **more):
    args = ["--samples", samples, "--in-flight", in_flight, "--prompt", prompt, "--tokens", tokens]
    for name, value in more.items():
        args += ["--" + name, value]
    return [str(a) for a in args]


def both_samples(lab, url, ours, theirs, in_flight, tokens, rounds=None, **more):
    """Ours makes more samples than theirs, so that both take about a second."""
    commands = lab.commands("samples", "official.py")
    commands["tnk"] += sample_args(max(ours, in_flight), in_flight, tokens, **more)
    if "official" in commands:
        commands["official"] += sample_args(max(theirs, in_flight), in_flight, tokens, **more)
    return lab.medians(commands, url, rounds=rounds)


# ---- samples a second ---------------------------------------------------

def throughput_at(lab, url, mode, tokens, in_flight, suffix=""):
    ours = 100 if lab.quick else {1: 5000}.get(in_flight, 10000) // (1 if tokens <= 128 else 2)
    if url.startswith("https") and not lab.quick:
        ours = 50000  # as many as h2load makes, of which handshakes are as small a part
    theirs = 20 if lab.quick else 200 if in_flight <= 10 else 500
    results = both_samples(lab, url, ours, theirs, in_flight, tokens)
    if mode == "single" and url.startswith("https") and need("h2load", "nghttp2-client"):
        results["raw"] = h2load_limit(lab, url, tokens, in_flight)
    elif mode == "single" and not url.startswith("https") and need("wrk", "wrk"):
        results["raw"] = raw_limit(lab, url, tokens, in_flight)
    label = "%d tokens, %s, %d in flight%s" % (tokens, mode, in_flight, suffix)
    lab.row("samples a CPU-second: " + label, results, "per_cpu_s", True)
    lab.row("samples a second: " + label, results, "per_s", True, detail=in_flight != 1000)


def throughput(lab):
    sizes = [1, 10] if lab.quick else [1, 10, 100, 1000, 2000]
    for mode, flags in MODES.items():
        with lab.stub(flags=flags) as stub:
            for tokens in [128, 1024]:
                for in_flight in sizes:
                    throughput_at(lab, stub.url, mode, tokens, in_flight)


def tls(lab):
    for mode, flags in MODES.items():
        with lab.stub(flags=flags, tls=True) as stub:
            throughput_at(lab, stub.url, mode, 128, 10 if lab.quick else 1000, ", TLS")


LUA = """
local headers = {["Content-Type"]="application/json", ["X-API-Key"]="tml-bench",
                 ["Accept"]="application/x-protobuf"}
local sample = '{"num_samples":1,"prompt":{"chunks":[{"tokens":[%s],"type":"encoded_text"}]},"max_tokens":%d}'
local fetch = '{"request_id":"S:0:1:%d:1","allow_metadata_only":true}'
local n = 0
local requests
function init()
  requests = {wrk.format("POST", "/api/v1/asample", headers, sample),
              wrk.format("POST", "/api/v1/retrieve_future", headers, fetch)}
end
function request()
  n = n + 1
  return requests[n %% 2 + 1]
end
"""


def wrk(lab, url, tokens, connections):
    """The same two requests a sample from a load generator, which does nothing
    else: what sending and receiving costs."""
    lua = LUA % (",".join(str(32 + i % 90) for i in range(PROMPT)), tokens, tokens)
    # With many connections the first second goes by with opening them.
    seconds = 3 if connections > 100 else 1
    # A file, because wrk reads it once for each thread.
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(lua)
        file.flush()
        out, used = lab.child_cpu(["wrk", "-t1", "-c%d" % connections, "-d%d" % seconds, "-s", file.name, url])
    n, wall = next((int(line.split()[0]) / 2, float(line.split()[3].rstrip("s,"))) for line in out.splitlines()
                   if " requests in " in line)
    return {"per_cpu_s": n / used, "per_s": n / wall}


def raw_limit(lab, url, tokens, in_flight):
    got = [wrk(lab, url, tokens, in_flight) for _ in range(lab.rounds)]
    return {key: statistics.median(g[key] for g in got) for key in got[0]}


BODY = ('{"num_samples":1,"prompt":{"chunks":[{"tokens":[%s],"type":"encoded_text"}]},"max_tokens":%d,'
        '"request_id":"S:0:1:%d:1"}')


def h2load(lab, url, tokens, in_flight):
    """The same two requests a sample, on as few connections as hold so many; the
    stub takes one body for both."""
    clients = max(in_flight // 100, 1)
    n = 2000 if lab.quick else 100000
    body = lab.file("body", BODY % (",".join(str(32 + i % 90) for i in range(PROMPT)), tokens, tokens))
    out, used = lab.child_cpu(["h2load", "-n%d" % n, "-c%d" % clients, "-m%d" % (in_flight // clients), "-d", body,
                               "-H", "content-type: application/json", "-H", "x-api-key: tml-bench",
                               url + "/api/v1/asample", url + "/api/v1/retrieve_future"])
    seconds = next(line.split()[2].rstrip(",") for line in out.splitlines() if line.startswith("finished in"))
    seconds = float(seconds[:-2]) / 1e3 if seconds.endswith("ms") else float(seconds.rstrip("s"))
    return {"per_cpu_s": n / 2 / used, "per_s": n / 2 / seconds}


def h2load_limit(lab, url, tokens, in_flight):
    got = [h2load(lab, url, tokens, in_flight) for _ in range(lab.rounds)]
    return {key: statistics.median(g[key] for g in got) for key in got[0]}


def growth(lab):
    """CPU a sample does not grow with the number in flight."""
    flags = ["sample_max_concurrent_requests=100000"]
    sizes = [10, 100] if lab.quick else [10, 100, 1000, 10000]
    for mode, more in MODES.items():
        with lab.stub(flags=flags + more) as stub:
            costs = {}
            for in_flight in sizes:
                commands = {"tnk": lab.commands("samples", "official.py")["tnk"] +
                            sample_args(100 if lab.quick else max(20000, 5 * in_flight), in_flight, 128)}
                costs[in_flight] = 1e6 / lab.medians(commands, stub.url)["tnk"]["per_cpu_s"]
                lab.row("CPU us a sample: %s, %d in flight" % (mode, in_flight),
                        {"tnk": {"us": costs[in_flight]}}, "us", detail=True)
            lab.row("CPU of a sample, %s: growth from %d in flight to %d" % (mode, sizes[0], sizes[-1]),
                    {"tnk": {"growth": costs[sizes[-1]] / costs[sizes[0]]}}, "growth", target="<= 1.3")


# ---- memory -------------------------------------------------------------

def status_kib(pid):
    with open("/proc/%d/status" % pid) as file:
        return int(next(line for line in file if line.startswith("VmRSS:")).split()[1])


def settle(stub, process, accepted):
    """Until all samples are with the server and nothing more moves."""
    last, same = None, 0
    give_up = time.monotonic() + SETTLE_S
    while same < 3 and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.2)
        counts = stub.counts()
        state = (counts["accepted"], counts["held"], status_kib(process.pid))
        same = same + 1 if state == last and state[0] >= accepted else 0
        last = state


def held_memory(lab, stub, in_flight, n_held=None):
    """Of `n_held` that the server has, and the others, which wait."""
    def measure(command, url):
        goal = stub.counts()["accepted"] + (n_held or in_flight)
        with lab.running(command, url) as (process, first):
            settle(stub, process, goal)
            result = {"kib": (status_kib(process.pid) - first["rss_kib"]) / in_flight}
            if "--count" in command:
                process.send_signal(signal.SIGINT)
                last = json.loads(process.stdout.readline())
                result["live"] = (last["live_bytes"] - first["live_bytes"]) / in_flight
            return result
    return measure


def memory(lab):
    flags = ["sample_max_concurrent_requests=100000"]
    for mode, more in MODES.items():
        with lab.stub("--latency-ms", "3600000", "--hold-ms", "3600000", flags=flags + more) as stub:
            for in_flight in [50, 100] if lab.quick else [1000, 10000]:
                memory_at(lab, stub, mode, in_flight)


def memory_at(lab, stub, mode, in_flight):
    def commands(prompt, **options):
        return lab.commands("samples", "official.py", *sample_args(in_flight, in_flight, 1, prompt), **options)

    measure = held_memory(lab, stub, in_flight)
    # What a sample takes hardly varies, and ten thousand take theirs a minute.
    rounds = lab.rounds if in_flight <= 1000 else 1
    label = "%s, %d in flight" % (mode, in_flight)
    lab.row("memory KiB a sample: " + label, lab.medians(commands(PROMPT), stub.url, measure, rounds), "kib")
    ours = {"tnk": commands(1, extra=["--count", "1"])["tnk"]}
    bare = lab.medians(ours, stub.url, measure, rounds)
    lab.row("the same with a prompt of one token: " + label, bare, "kib")
    lab.row("of that allocated, bytes: " + label, bare, "live", detail=True)


# ---- passes -------------------------------------------------------------

def passes(lab):
    size = ["16", "64"] if lab.quick else ["256", "4096"]
    for zstd in ["", ", zstd"]:
        with lab.stub(flags=["proto_compress_fwdbwd=true"] if zstd else []) as stub:
            for loss in ["cross_entropy", "importance_sampling"]:
                results = lab.medians(lab.commands("passes", "official_passes.py", *size, loss), stub.url)
                label = "%s, %s x %s tokens%s" % (loss, *size, zstd)
                lab.row("CPU ms of a pass: " + label, results, "cpu_ms")
                lab.row("ms until the server had it: " + label, results, "sent_ms")
                lab.row("peak MiB beyond the data: " + label, results, "peak_mib")


# ---- delays -------------------------------------------------------------

def round_trip_ms(stub):
    """The median of bare requests on one connection."""
    took = []
    with socket.create_connection(("127.0.0.1", stub.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if stub.trust:
            connection = stub.trust.wrap_socket(connection, server_hostname="127.0.0.1")
        for _ in range(200):
            start = time.perf_counter()
            connection.sendall(b"GET /api/v1/healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.recv(4096)
            took.append(time.perf_counter() - start)
    return statistics.median(took) * 1000


def delay_at(lab, mode, flags, label, args, tls=False):
    with lab.stub("--latency-ms", "150", "--stub-spread-ms", "250", *args, flags=flags, tls=tls) as stub:
        trip = round_trip_ms(stub)
        results = both_samples(lab, stub.url, 40 if lab.quick else 400, 20 if lab.quick else 200, 30, 128,
                               delays=1)
        cut = stub.counts()["cut"]
    for result in results.values():
        for key in ["delay_p50_ms", "delay_p99_ms"]:
            result[key] = max(result[key] - trip, 0)
    print("(a round trip takes %.3f ms; %d polls cut)" % (trip, cut))
    label = "%s, %s" % (mode, label)
    lab.row("result delay beyond a round trip, ms, p50: " + label, results, "delay_p50_ms", detail=True)
    lab.row("result delay beyond a round trip, ms, p99: " + label, results, "delay_p99_ms", target="<= 2")


def delay(lab):
    for mode, flags in MODES.items():
        for hold in ["50", "1000", "10000"]:
            delay_at(lab, mode, flags, "polls of %g s" % (int(hold) / 1000), ["--hold-ms", hold])
        # Batched polls are not held for long, because there is always a sample that ends soon.
        what, after = ("each sample's first poll cut", "100") if mode == "single" else ("every other poll cut", "5")
        delay_at(lab, mode, flags, what, ["--hold-ms", "10000", "--stub-cut-ms", after])
        delay_at(lab, mode, flags, "polls of 10 s, TLS", ["--hold-ms", "10000"], tls=True)


# ---- stalls -------------------------------------------------------------

def stall_rows(lab, what, results, prefix=""):
    lab.row("longest stall of the loop, ms: " + what, results, prefix + "stall_ms")
    lab.row("longest CPU time of a turn, ms: " + what, results, prefix + "stall_cpu_ms", detail=True)


def stall(lab):
    in_flight = 50 if lab.quick else 1000
    size = ["16", "64"] if lab.quick else ["256", "4096"]
    with lab.stub("--latency-ms", "200") as stub:
        stall_rows(lab, "saving weights", lab.medians(lab.commands("saves", "official_saves.py", "5"), stub.url))
        stall_rows(lab, "encoding %s x %s tokens" % tuple(size),
                   lab.medians(lab.commands("passes", "official_passes.py", *size, "cross_entropy", "stall"), stub.url))
    with lab.stub("--latency-ms", "2000") as stub:
        results = both_samples(lab, stub.url, in_flight, in_flight, in_flight, 128, stall=1)
        stall_rows(lab, "sending %d samples" % in_flight, results, "send_")
        stall_rows(lab, "receiving %d results" % in_flight, results)


# ---- start --------------------------------------------------------------

def first_request(lab, command, listener, url):
    """Milliseconds from the start of a process to its first request."""
    context = lab.server_context() if url.startswith("https") else None
    start = time.perf_counter()
    process = subprocess.Popen(command, env=lab.environment(url), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        connection, _ = listener.accept()
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        with connection:
            if connection.recv(1):
                took = time.perf_counter() - start
                break
    process.kill()
    process.wait()
    return {"request_ms": took * 1000}


def first_sample(lab, command, url):
    """Milliseconds, and CPU milliseconds, until the first sample has come."""
    start = time.monotonic_ns()
    result = lab.run(command, url)
    return {"sample_ms": (result["first_ns"] - start) / 1e6, "sample_cpu_ms": result["first_cpu_ms"]}


def start_rows(lab, suffix, listener, listener_url, url):
    commands = lab.commands("samples", "official.py", *sample_args(1, 1, 128))
    results = lab.medians(commands, url, lambda command, u: first_sample(lab, command, u))
    to_request = lab.medians(commands, listener_url, lambda command, u: first_request(lab, command, listener, u))
    for name, result in results.items():
        result.update(to_request[name])
    lab.row("process start to first request, ms" + suffix, results, "request_ms")
    lab.row("process start to first sample, ms" + suffix, results, "sample_ms")
    lab.row("CPU until the first sample, ms" + suffix, results, "sample_cpu_ms", target="<= 20")


def start(lab):
    for suffix, tls in [("", False), (", TLS with the system's certificates", True)]:
        with lab.stub(tls=tls) as stub, socket.create_server(("127.0.0.1", 0)) as listener:
            scheme = stub.url.split(":")[0]
            start_rows(lab, suffix, listener, "%s://127.0.0.1:%d" % (scheme, listener.getsockname()[1]), stub.url)


GROUPS = {"throughput": throughput, "tls": tls, "growth": growth, "memory": memory,
          "passes": passes, "delay": delay, "stall": stall, "start": start}
