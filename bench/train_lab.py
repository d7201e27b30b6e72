# SPDX-License-Identifier: MIT
"""The group about `tnk train`: a step of it beside one pass of the library and
beside the supervised loop of the cookbook, and the idle time of the service."""
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from lab import HERE

INTEROP = pathlib.Path(HERE).parent / "test" / "interop"

LENGTH = 1000  # tokens of a model input
N_CHATS = 640
BATCH = 64
LATENCY_MS = 20
# The format of the cookbook's renderer qwen3_instruct.
TEMPLATE = ("{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
RENDERED = ["--train-on", "all-answers", "--renderer", "qwen3_instruct", "--tokenizer"]
PLAIN = ["--train-on", "all-answers"]


class Sizes:
    """Two lengths of run. Their difference has no start and no reading of data."""

    def __init__(self, lab):
        self.batch = 8 if lab.quick else BATCH
        self.ours = (4, 12) if lab.quick else (50, 1050)
        self.theirs = (1, 3) if lab.quick else (2, 10)
        self.idle = 20 if lab.quick else 2000


# ---- Data ---------------------------------------------------------------

def message(role, n, at):
    return {"role": role, "content": "".join(chr(97 + (at * 31 + i * 7) % 26) for i in range(n))}


def chats():
    """Twenty messages each. In the plain template of tnk/byte-lm a model input has
    LENGTH tokens."""
    for i in range(N_CHATS):
        yield {"messages": [message(("user", "assistant")[k % 2], 38 + 26 * (k == 19), i + k) for k in range(20)]}


def tnk(lab):
    return os.path.join(lab.build, "src", "tools", "tnk", "tnk")


def length_of(lab, data, how):
    """The tokens of a model input; all have the same number."""
    plan = subprocess.run([tnk(lab), "train", "--dry-run", "--json", "--model", "tnk/byte-lm", *how, data], check=True,
                          capture_output=True, text=True)
    return json.loads(plan.stdout)["tokens"] // N_CHATS


def write_data(lab, folder):
    """The chats in JSON Lines and packed."""
    lines, packed = os.path.join(folder, "chats.jsonl"), os.path.join(folder, "chats.pack")
    with open(lines, "w") as file:
        file.writelines(json.dumps(one) + "\n" for one in chats())
    subprocess.run([tnk(lab), "chat-data", "-q", *PLAIN, "--packed", packed, lines], check=True)
    if length_of(lab, packed, PLAIN) != LENGTH:
        sys.exit("the chats have another length")
    return {"chats in JSON Lines": lines, "packed data": packed}


# ---- Runs ---------------------------------------------------------------

def train(lab, url, data, n_steps, *args, how=PLAIN):
    """Run tnk train. Returns its CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        command = [tnk(lab), "train", data, "--model", "tnk/byte-lm", *how, "--run", run, "--steps", str(n_steps), "-q", *args]
        _, cpu_s = lab.child_cpu(command, env=lab.environment(url))
        with open(os.path.join(run, "metrics.jsonl")) as file:
            if len(file.readlines()) != n_steps:
                sys.exit("it has not made all steps: " + " ".join(command))
    return cpu_s


def difference(lengths, cpu_s):
    """The CPU milliseconds of one step."""
    few, many = (cpu_s(n) for n in lengths)
    return {"ms": (many - few) / (lengths[1] - lengths[0]) * 1e3}


def one_pass(lab, url, sizes):
    command = [lab.build + "/bench/bench_passes", str(sizes.batch), str(LENGTH)]
    return {"ms": statistics.median(lab.run(command, url)["cpu_ms"] for _ in range(5))}


def beside_a_pass(lab, sizes, data):
    """The column "limit" is one pass with the same number of tokens."""
    with lab.stub() as stub:
        def measure(name, url):
            if name == "pass":
                return one_pass(lab, url, sizes)
            return difference(sizes.ours, lambda n: train(lab, url, data[name], n, "--batch", str(sizes.batch)))
        results = lab.medians({**{name: name for name in data}, "pass": "pass"}, stub.url, measure)
    for name in data:
        rows = {"tnk": results[name], "raw": results["pass"]}
        rows["tnk"]["ratio"] = results[name]["ms"] / results["pass"]["ms"]
        label = "%d x %d tokens, %s" % (sizes.batch, LENGTH, name)
        lab.row("CPU ms of a step of tnk train: " + label, rows, "ms")
        lab.row("the same, divided by one pass: " + label, rows, "ratio", target="<= 1.2")


# ---- The loop of the cookbook -------------------------------------------

def field(number, data):
    """A field of a message in protobuf, with its length."""
    def varint(n):
        out = bytearray()
        while n > 0x7f:
            out.append(n & 0x7f | 0x80)
            n >>= 7
        return bytes(out) + bytes([n])

    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def pass_result(lengths):
    """The result of a pass: a logprob for each token."""
    total = sum(lengths)
    offsets = [0]
    for n in lengths:
        offsets.append(offsets[-1] + 4 * n)
    tensor = (field(1, struct.pack("<f", -1) * total) + field(2, struct.pack("<%dq" % len(offsets), *offsets)) +
              field(3, 1))
    record = field(1, b"ArrayRecord") + field(2, field(1, b"logprobs") + field(2, tensor)) + field(3, len(lengths))
    metrics = field(1, b"loss:sum") + b"\x11" + struct.pack("<d", total)
    return field(1, b"ArrayRecord") + field(2, record) + field(3, metrics)


class Outputs:
    """The stub, whose passes have outputs, as the cookbook needs them."""

    def __init__(self, stub, lengths):
        to, result = urllib.parse.urlsplit(stub.url), pass_result(lengths)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1
            disable_nagle_algorithm = True

            def serve(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                behind = http.client.HTTPConnection(to.hostname, to.port, timeout=120)
                behind.request(self.command, self.path, body,
                               {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")})
                answer = behind.getresponse()
                kind, got = answer.getheader("content-type"), answer.read()
                behind.close()
                if kind == "application/x-protobuf":
                    got = result
                self.send_response(answer.status)
                self.send_header("Content-Type", kind or "text/plain")
                self.send_header("Content-Length", str(len(got)))
                self.end_headers()
                self.wfile.write(got)

            do_GET = do_POST = do_PUT = do_DELETE = serve

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Cookbook:
    """The newest cookbook, in the environment of test/interop/cookbook/train.py."""

    def __init__(self, folder):
        sys.path += [str(INTEROP / "cookbook"), str(INTEROP)]
        from rl_loop import Environment, MODEL, write_tokenizer
        from run import VERSIONS
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        environment = Environment(pathlib.Path(os.environ.get("TNK_INTEROP_CACHE") or os.path.join(cache, "tnk-interop")))
        environment.prepare(VERSIONS[:1])
        self.folder, self.python, self.model = pathlib.Path(folder), environment.python, MODEL
        write_tokenizer(self.folder / MODEL)
        (self.folder / MODEL / "chat_template.jinja").write_text(TEMPLATE)

    def cpu_s(self, lab, url, rows, batch, n_steps):
        batches = [[rows[(step * batch + i) % len(rows)] for i in range(batch)] for step in range(n_steps)]
        log = tempfile.mkdtemp(dir=self.folder)
        job = {"method": "sft", "model": self.model, "batches": batches, "rate": 0.01, "rank": 32, "eps": 1e-12,
               "schedule": "linear", "log": log}
        (self.folder / "job.json").write_text(json.dumps(job))
        env = {**lab.environment(url), "HOME": str(self.folder), "HF_HOME": str(self.folder / "hf"),
               "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": str(INTEROP / "standin")}
        _, cpu_s = lab.child_cpu([str(self.python), str(INTEROP / "cookbook" / "train_driver.py"), "job.json"],
                                 env=env, cwd=self.folder)
        with open(os.path.join(log, "metrics.jsonl")) as file:
            if sum("train_mean_nll" in line for line in file) != n_steps:
                sys.exit("the cookbook has not made all steps")
        return cpu_s


def beside_the_cookbook(lab, sizes, data, folder):
    """Both read a logprob for each token. The cookbook renders and tokenizes the
    chats of a step in its loop."""
    try:
        cookbook = Cookbook(folder)
    except SystemExit:
        print("left out: the cookbook cannot be installed")
        return
    rows, lines = list(chats()), data["chats in JSON Lines"]
    how = [*RENDERED, str(cookbook.folder / cookbook.model)]
    length = length_of(lab, lines, how)
    with lab.stub() as stub, Outputs(stub, [length] * sizes.batch) as server:
        def measure(name, url):
            if name == "official":
                return difference(sizes.theirs, lambda n: cookbook.cpu_s(lab, url, rows, sizes.batch, n))
            return difference(sizes.ours, lambda n: train(lab, url, lines, n, "--batch", str(sizes.batch), how=how))
        results = lab.medians({"tnk": "tnk", "official": "official"}, server.url, measure)
    lab.row("CPU ms of a step with logprobs: %d x %d tokens, beside the cookbook's loop" % (sizes.batch, length),
            results, "ms")


# ---- The service --------------------------------------------------------

def idle(lab, sizes, data):
    """The part of a run in which the stub has sent all results. It has the
    defaults; the first and the last save wait for all steps before them."""
    for name, path in data.items():
        shares = []
        for _ in range(lab.rounds):
            with lab.stub("--latency-ms", str(LATENCY_MS)) as stub:
                began = time.monotonic()
                train(lab, stub.url, path, sizes.idle)
                shares.append(stub.counts()["idle_ns"] / (time.monotonic() - began) / 1e7)
        lab.row("%% of a run without work for the service: %d steps, %d ms, %s" % (sizes.idle, LATENCY_MS, name),
                {"tnk": {"percent": statistics.median(shares)}}, "percent", target="< 2")


def group(lab):
    sizes = Sizes(lab)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        data = write_data(lab, folder)
        beside_a_pass(lab, sizes, data)
        beside_the_cookbook(lab, sizes, data, folder)
        idle(lab, sizes, data)


GROUPS = {"train": group}
