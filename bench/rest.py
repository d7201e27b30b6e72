# SPDX-License-Identifier: MIT
"""Groups about what the service keeps: lists, weights, and the command line.
Each takes a Lab."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

from canned import Canned
from lab import Store, need

RUN = "0123456789abcdef-0123:train:0"


def checkpoint(i):
    path = "weights/%06d" % i
    return {"checkpoint_id": path, "checkpoint_type": "training", "time": "2026-01-02T03:04:05.678901Z",
            "tinker_path": "tinker://%s/%s" % (RUN, path), "size_bytes": 123456789 + i, "public": False,
            "user_metadata": {"step": str(i), "note": "the quick brown fox"}, "expires_at": "2027-01-02T03:04:05Z"}


def page_of(n):
    return {"checkpoints": [checkpoint(i) for i in range(n)],
            "cursor": {"offset": 0, "limit": n, "total_count": n}}


def tree_ms(body, rounds):
    """CPU time of reading JSON into Python's objects, and nothing more."""
    began = time.process_time()
    for _ in range(rounds):
        json.loads(body)
    return {"cpu_ms": (time.process_time() - began) * 1e3 / rounds}


def records(lab):
    """A page of checkpoints, the whole call."""
    n = 100 if lab.quick else 1000
    commands = lab.commands("records", "official_records.py", str(n))
    for name, command in commands.items():
        pages = 3 if lab.quick else 200 if name == "tnk" else 20
        command.insert(-1, str(pages))
    with lab.stub() as stub, Canned(stub, {"GET checkpoints": page_of(n)}) as server:
        results = lab.medians(commands, server.url)
        results["raw"] = tree_ms(server.answers["GET checkpoints"], 20)
    lab.row("CPU ms of a page of %d checkpoints" % n, results, "cpu_ms", target="<= 1/4")
    lab.row("most KiB in use meanwhile", results, "peak_kib", detail=True)


def lines_of(i):
    """Of one save, as a ledger has them."""
    common = {"tnk_attempt": 1, "tnk_save": i + 1, "tnk_what": 1, "tnk_run": RUN, "tnk_steps": i,
              "tnk_passes": i, "tnk_time": 1795451678, "tnk_cursor": "{}", "tnk_trained_tokens": 8322 * i,
              "tnk_requests": 83 + i, "tnk_bytes_sent": 245833, "tnk_bytes_received": 138690}
    name = "save-%d" % (i + 1)
    return [{"name": name, "epoch": 0, "tnk": "intent", **common},
            {"name": name, "batch": i, "epoch": 0, "state_path": "tinker://%s/weights/%s" % (RUN, name),
             "tnk": "saved", **common}]


def ledger(lab):
    """Ledgers that are opened; the limit is Python's for the same lines."""
    for n in (1000,) if lab.quick else (1000, 100000):
        text = [json.dumps(line, separators=(",", ":")) for i in range(n // 2) for line in lines_of(i)]
        with tempfile.TemporaryDirectory() as folder, lab.stub() as stub:
            with open(os.path.join(folder, "checkpoints.jsonl"), "w", encoding="utf-8") as file:
                file.write("\n".join(text) + "\n")
            results = lab.medians({"tnk": [lab.build + "/bench/bench_ledger", folder]}, stub.url)
        began = time.process_time()
        for line in text:
            json.loads(line)
        results["raw"] = {"cpu_ms": (time.process_time() - began) * 1e3}
        lab.row("CPU ms of opening a ledger of %d lines" % n, results, "cpu_ms")
        lab.row("ms of it, with the disk", results, "wall_ms", target="< 5" if n == 1000 else "< 500")


# ---- the command line ---------------------------------------------------


RUN_RECORD = {"training_run_id": RUN, "base_model": "a/model", "model_owner": "tml:organization_user:1", "is_lora": True,
              "lora_rank": 32, "corrupted": False, "last_request_time": "2026-01-02T03:04:05Z",
              "last_checkpoint": checkpoint(7), "last_sampler_checkpoint": None, "user_metadata": {"a": "b"}}


def first_line(lab, server):
    """Milliseconds from the start of the process until it has printed, less
    what the server's answers took."""
    def measure(command, url):
        busy = server.busy_s
        began = time.perf_counter()
        with subprocess.Popen(command, env=lab.environment(url), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            said = process.stdout.readline()
            took = time.perf_counter() - began
            rest, errors = process.communicate()
        if process.returncode != 0 or RUN.encode() not in said + rest:
            raise SystemExit("%s\n%s%s" % (" ".join(command), (said + rest).decode(), errors.decode()))
        return {"ms": (took - (server.busy_s - busy)) * 1e3, "whole_ms": took * 1e3}
    return measure


def has_command(tnk, *words):
    """Commands that do not exist end with 2."""
    return subprocess.run([tnk, *words, "--help"], capture_output=True).returncode == 0


def command(lab):
    """`run info`, from the start of the process."""
    tnk = os.path.join(lab.build, "src", "tools", "tnk", "tnk")
    if not has_command(tnk, "run", "info"):
        print("left out, for this tnk has no command run info")
        return
    commands = {"tnk": [tnk, "run", "info", RUN]}
    if lab.python:
        commands["official"] = [lab.python, "-m", "tinker.cli", "run", "info", RUN]
    with lab.stub() as stub, Canned(stub, {"GET training_runs/" + RUN: RUN_RECORD}) as server:
        results = lab.medians(commands, server.url, first_line(lab, server))
    lab.row("run info: ms from process start to the first line, less the answers", results, "ms", target="<= 10")
    lab.row("run info: the same with the answers", results, "whole_ms", detail=True)


# ---- weights ------------------------------------------------------------

EXTERNAL = "external_weights/bench"


def curl(urls, folder):
    """The same files from `curl --parallel`."""
    args = ["curl", "-s", "-f", "--parallel", "--parallel-immediate", "--parallel-max", str(len(urls))]
    for name, url in urls.items():
        args += ["-o", os.path.join(folder, name), url]
    began = time.perf_counter()
    subprocess.run(args, check=True, capture_output=True)
    return time.perf_counter() - began


def weights(lab):
    """Files of a checkpoint over plain HTTP, with curl beside."""
    if not need("nginx", "nginx") or not need("curl", "curl"):
        return
    n, mib = (2, 4) if lab.quick else (8, 128)
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(Store({"part-%d.bin" % i: mib << 20 for i in range(n)}))
        stub = stack.enter_context(lab.stub())
        server = stack.enter_context(Canned(stub, {
            "GET training_runs/%s/checkpoints/%s/external_weights_urls" % (RUN, EXTERNAL):
                {"urls": {name: url + "?signature=1" for name, url in store.urls.items()},
                 "expires": "2100-01-01T00:00:00Z"}}))

        def measure(command, url):
            folder = tempfile.mkdtemp(dir=store.folder)
            try:
                if command[0] == "curl":
                    seconds = curl(store.urls, folder)
                    return {"mib_s": n * mib / seconds}
                return lab.run([*command, os.path.join(folder, "weights")], url)
            finally:
                shutil.rmtree(folder)

        commands = {"tnk": [lab.build + "/bench/bench_weights", "tinker://%s/%s" % (RUN, EXTERNAL)], "raw": ["curl"]}
        results = lab.medians(commands, server.url, measure)
    results["tnk"]["ratio"] = results["tnk"]["mib_s"] / results["raw"]["mib_s"]
    label = "%d files of %d MiB" % (n, mib)
    lab.row("MiB/s until the last byte of %s has come" % label, results, "mib_s", True)
    lab.row("the same in that of curl --parallel", results, "ratio", True, target=">= 0.9", detail=True)
    lab.row("memory for that, MiB", results, "peak_mib", target="<= 8")
    lab.row("seconds until all is on the disk", results, "whole_s", detail=True)


GROUPS = {"records": records, "ledger": ledger, "command": command, "weights": weights}
