# SPDX-License-Identifier: MIT
"""The groups about conversations: templates and tokens beside transformers, and
the gateway, which has no counterpart."""
import contextlib
import json
import os
import pathlib
import pydoc_data.topics
import re
import statistics
import subprocess
import sys
import time

from lab import HERE

TESTS = pathlib.Path(HERE).parent / "test"
sys.path[:0] = [str(TESTS / name) for name in ("tokenizers", "chat", "support")]
import own_venv  # noqa: E402
import reference  # noqa: E402
import tokens  # noqa: E402

LENGTH = 38  # bytes of a message: with ten turns of plain roles a thousand tokens
TURNS = 10
TOOL = {"type": "function", "function": {
    "name": "look_up", "description": "Looks something up in a store of texts.",
    "parameters": {"type": "object", "required": ["query"], "properties": {
        "query": {"type": "string", "description": "What to look for."}, "limit": {"type": "integer"}}}}}


# ---- Templates and tokens -----------------------------------------------

def conversation(n_asked, n_answered, with_tools):
    """Fifty turns of English, the last of which is to be answered."""
    topics = pydoc_data.topics.topics
    text = " ".join(" ".join(topics[name].split()) for name in sorted(topics))
    messages, at = [], 0
    for turn in range(50):
        messages.append({"role": "user", "content": text[at:at + n_asked]})
        answer = {"role": "assistant", "content": text[at + n_asked:at + n_asked + n_answered]}
        at += n_asked + n_answered
        if with_tools and turn % 2:
            call = {"name": "look_up", "arguments": {"query": answer["content"][:40], "limit": 5}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call}]})
            messages.append({"role": "tool", "content": json.dumps({"found": answer["content"][:200]})})
        if turn < 49:
            messages.append(answer)
    return json.dumps({"messages": messages, **({"tools": [TOOL] * 4} if with_tools else {})})


def chat_row(lab, python, folder, name, label, text):
    path = lab.file("conversation.json", text)
    rounds = "2" if lab.quick else "100"
    commands = {"tnk": [lab.build + "/bench/bench_chat", str(folder), path, rounds],
                "official": [str(python), os.path.join(HERE, "official_chat.py"), str(folder), path, rounds[:2]]}
    results = lab.medians(commands, "http://127.0.0.1:9")
    if results["tnk"]["hash"] != results["official"]["hash"]:
        sys.exit("%s, %s: the ids are not the same" % (name, label))
    label = "%s, %s, %d tokens" % (name, label, results["tnk"]["n_ids"])
    lab.row("CPU us of 50 turns to tokens: " + label, results, "ids_us", target=">= 20x")
    lab.row("to their text alone: " + label, results, "text_us", detail=True)


def make_venv(cache):
    """A Python that has transformers. test/chat/tokens.py uses it as well."""
    version = tokens.VERSIONS[0]
    folder = cache / f"venv-chat-{version}"
    return own_venv.make(folder, *tokens.packages_of(version))


def chat(lab):
    """The column of the official client is transformers' apply_chat_template."""
    cache = pathlib.Path(lab.build).resolve() / "conformance"  # shared with test/chat/tokens.py
    try:
        python = make_venv(cache)
        folders = {name: reference.vocabulary(cache, name) for name in ("qwen3", "llama3_2")}
    except reference.Skip as e:
        print("left out: %s" % e)
        return
    for name, folder in folders.items():
        chat_row(lab, python, folder, name, "messages of 200 and 600 bytes", conversation(200, 600, False))
        chat_row(lab, python, folder, name, "messages of 20 and 40 bytes", conversation(20, 40, False))
    chat_row(lab, python, folders["qwen3"], "qwen3", "tools", conversation(200, 400, True))


# ---- The gateway --------------------------------------------------------

class Gateway:
    """`tnk gateway` in front of a stub."""

    def __init__(self, lab, stub, *args):
        env = {**lab.environment(stub.url), "TINKER_API_KEY": "tml-bench"}
        command = [lab.build + "/src/tools/tnk/tnk", "gateway", "--model", "tnk/byte-lm", "--port", "0", "--exit-with-stdin"]
        self.process = subprocess.Popen([*command, *args], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1].rstrip("/\n"))

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_kib(self):
        with open("/proc/%d/status" % self.process.pid) as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def load(lab, port, *args):
    command = [lab.build + "/bench/bench_gateway", "127.0.0.1", str(port), "--length", str(LENGTH), "--turns", str(TURNS)]
    return lab.run([*command, *map(str, args)], "http://127.0.0.1:%d" % port)


def answers(lab):
    command = [lab.build + "/bench/bench_gateway", "--answer", str(LENGTH)]
    return lab.file("answers", subprocess.run(command, capture_output=True, text=True, check=True).stdout)


# What it records in: nothing, a file, or one that each answer waits for.
RECORDS = {"in memory alone": [], "recorded": ["--record"], "recorded, on the disk": ["--sync", "--record"]}


def record_args(lab, kind):
    path = lab.file("record.jsonl", "")
    return [*RECORDS[kind], path] if RECORDS[kind] else []


def completions(lab, kind):
    n = 20 if lab.quick else 2000
    rounds = []
    for _ in range(lab.rounds):
        with lab.stub("--stub-answers", answers(lab)) as stub, Gateway(lab, stub, *record_args(lab, kind)) as gateway:
            load(lab, gateway.port, "--connections", 1, "--conversations", 1)
            before = gateway.cpu_s()
            load(lab, gateway.port, "--connections", 64, "--conversations", n)
            rounds.append(n * TURNS / max(gateway.cpu_s() - before, 0.01))
    lab.row("chat completions a CPU-second of the gateway: " + kind,
            {"tnk": {"per_cpu_s": statistics.median(rounds)}}, "per_cpu_s", True, target=">= 5000")


def spread(lab, kind):
    n = 100 if lab.quick else 1000
    args = ["--connections", n, "--conversations", n, "--rate", n]
    ways = {"direct": ["--direct", "1"], "whole": [], "stream": ["--stream", "1"]}
    got = {way: [] for way in ways}
    with lab.stub("--stub-answers", answers(lab)) as stub, Gateway(lab, stub, *record_args(lab, kind)) as gateway:
        for _ in range(lab.rounds):
            for way, more in ways.items():
                got[way].append(load(lab, stub.port if way == "direct" else gateway.port, *args, *more))
    middle = {way: {key: statistics.median(one[key] for one in ones) for key in ones[0]} for way, ones in got.items()}
    label = "%d a second, %d sessions, %s" % (n, n, kind)
    for part, key, what in [("last", "whole", "answers"), ("first", "stream", "the first byte of streams")]:
        for p in ["p50", "p99"]:
            name = "%s_%s_ms" % (part, p)
            added = middle[key][name] - middle["direct"]["last_%s_ms" % p]
            lab.row("ms added to %s, %s: %s" % (what, p, label), {"tnk": {"ms": added}}, "ms",
                    target="<= 1" if p == "p99" else None, detail=p == "p50")
    lab.row("ms of the two requests themselves, p99: " + label, {"tnk": {"ms": middle["direct"]["last_p99_ms"]}}, "ms",
            detail=True)


def waiting(lab):
    """What requests take that the server has not answered."""
    n = 50 if lab.quick else 1000
    flags = ["sample_max_concurrent_requests=100000"]
    rounds = []
    for _ in range(lab.rounds):
        with lab.stub("--latency-ms", "3600000", "--hold-ms", "3600000", flags=flags) as stub, \
                Gateway(lab, stub, *record_args(lab, "recorded")) as gateway, contextlib.ExitStack() as stack:
            before = gateway.rss_kib()
            command = [lab.build + "/bench/bench_gateway", "127.0.0.1", str(gateway.port), "--connections", str(n),
                       "--conversations", str(n), "--turns", "1"]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            give_up = time.monotonic() + 60
            while stub.counts()["accepted"] < n and time.monotonic() < give_up:
                time.sleep(0.1)
            time.sleep(1)
            rounds.append((gateway.rss_kib() - before) / n)
    lab.row("memory KiB a request that waits, with its connection: %d waiting" % n,
            {"tnk": {"kib": statistics.median(rounds)}}, "kib", target="<= 16")


def gateway(lab):
    for kind in ["recorded", "in memory alone"]:
        completions(lab, kind)
    for kind in ["recorded", "in memory alone", "recorded, on the disk"]:
        spread(lab, kind)
    waiting(lab)


GROUPS = {"chat": chat, "gateway": gateway}
