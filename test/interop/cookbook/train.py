#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tnk train` and the cookbook's modules for training, on the same batches.

    python3 train.py --build BUILD_DIR [--cache FOLDER]

Both train a model of the same local server, from the same seed and at the same rates.
A proxy records what they send. Their examples are compared field by field, and the
losses of all steps. Skips, with the reason, where PyPI cannot be reached.
"""
import argparse
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "wire"))
import compare  # noqa: E402
import messages  # noqa: E402
import proxy  # noqa: E402
from rl_loop import MODEL, Environment, write_tokenizer  # noqa: E402
from run import VERSIONS  # noqa: E402
from tap import check, plan  # noqa: E402

PROTO = HERE.parent.parent.parent / "src" / "lib" / "wire" / "message" / "proto" / "tinker.proto"
# Of the message Tensor.
KINDS = {1: "f", 2: "q", 3: "i"}
STEPS, BATCH, RANK, BETA = 50, 4, 8, 0.1
RATES = {"sft": 0.01, "dpo": 0.001}
# Of losses, and relative to larger numbers, which the cookbook has as float32.
CLOSE = 1e-5
# The cookbook's default is 1e-8. tnk has the default of the client, and the
# updates of parameters with tiny gradients depend on it.
EPS = 1e-12
TEMPLATE = ("{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def message(role, text):
    return {"role": role, "content": text}


def conversations():
    """Of different lengths. Some have two answers, and some a system message."""
    for i in range(60):
        chat = [message("system", "Be brief.")] if i % 3 == 0 else []
        chat += [message("user", f"Count from {i}"), message("assistant", f"{i}, {i + 1}" + "." * (i % 7))]
        if i % 2:
            chat += [message("user", "And é?"), message("assistant", "É" * (1 + i % 4))]
        yield {"messages": chat}


def pairs():
    for i in range(60):
        prompt = [message("user", f"Say {i}")]
        yield {"chosen": [*prompt, message("assistant", f"{i} it is" + "!" * (i % 5))],
               "rejected": [*prompt, message("assistant", "No." * (1 + i % 3))]}


# ---- what was sent ----------------------------------------------------------


def numbers(kind, text):
    data = bytes.fromhex(text)
    return list(struct.unpack(f"<{len(data) // struct.calcsize(kind)}{kind}", data))


def datum(sent):
    """An example with its numbers readable."""
    inputs = {name: dict(tensor) for name, tensor in sent["loss_fn_inputs"].items()}
    for tensor in inputs.values():
        tensor["dense"] = numbers(KINDS[tensor.get("dtype", 0)], tensor["dense"])
    return {"tokens": [t for chunk in sent["model_input"] for t in numbers("i", chunk["encoded_text"]["tokens"])],
            "loss_fn_inputs": inputs}


class Sent:
    """What one run has sent, in the order of its numbers."""

    def __init__(self, requests):
        schema = messages.Schema(PROTO.read_text())
        reader = compare.Reader(lambda body: schema.read("ForwardBackwardRequest", body), None)
        self.calls = {"forward": [], "forward_backward": [], "optim_step": []}
        for _, path, headers, body in requests:
            call = path.rsplit("/", 1)[-1]
            if call not in self.calls:
                continue
            sent = reader.body({name.lower(): value for name, value in headers}, body)
            self.calls["forward" if sent.get("forward_only") else call].append(sent)
        for calls in self.calls.values():
            calls.sort(key=lambda request: request["seq_id"])

    def batches(self, call):
        """The examples of the last passes; earlier ones were for the reference."""
        return [[datum(one) for one in sent["data"]] for sent in self.calls[call][-STEPS:]]

    def rates(self):
        return [sent["adam_params"]["learning_rate"] for sent in self.calls["optim_step"]]


# ---- the two programs -------------------------------------------------------


class Comparison:
    def __init__(self, folder, recorder, tnk, python):
        self.folder, self.recorder, self.tnk, self.python = folder, recorder, tnk, python
        self.env = {**os.environ, "TINKER_BASE_URL": recorder.url, "TINKER_API_KEY": "tml-local",
                    "TINKER_TELEMETRY": "0", "no_proxy": "*", "HOME": str(folder),
                    "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1",
                    "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": str(HERE.parent / "standin")}

    def run(self, name, *command):
        """Run a program. Returns what it has sent."""
        self.recorder.begin({})
        ran = subprocess.run([str(word) for word in command], cwd=self.folder, env=self.env,
                             capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
                             check=False)
        check(ran.returncode == 0, f"{name} trains", (ran.stderr + ran.stdout)[-4000:])
        return Sent(self.recorder.requests)

    def numbers(self, run, *names):
        lines = (self.folder / run / "metrics.jsonl").read_text().splitlines()
        return [[line[name] for name in names] for line in map(json.loads, lines) if names[0] in line]

    def ours(self, method, rows, *args):
        data = self.folder / f"{method}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.run(f"tnk train --method {method}", self.tnk, "train", data, "--method", method,
                        "--model", MODEL, "--tokenizer", MODEL, "--renderer", "qwen3_instruct",
                        "--run", f"tnk-{method}", "--steps", STEPS, "--batch", BATCH, "--rank", RANK,
                        "--learning-rate", RATES[method], "--train-on", "all-answers", *args)

    def theirs(self, method, batches):
        job = {"method": method, "model": MODEL, "batches": batches, "rate": RATES[method], "rank": RANK,
               "beta": BETA, "eps": EPS, "schedule": "linear", "log": str(self.folder / f"log-{method}")}
        (self.folder / "job.json").write_text(json.dumps(job))
        return self.run(f"the cookbook's module for {method}", self.python, HERE / "train_driver.py", "job.json")


def encode(chat):
    """The model input of a conversation: bytes, and the two marks of the format."""
    ids = []
    for part in chat:
        ids += [257, *f"{part['role']}\n{part['content']}".encode(), 258, 10]
    return tuple(ids[:-2])


def order_of(batches, known, per):
    """The rows of each batch that tnk has sent."""
    sent = [[tuple(one["tokens"]) for one in batch[::per]] for batch in batches]
    strange = [one for batch in sent for one in batch if one not in known]
    check(len(sent) == STEPS and not strange, "each example is the text of a row", strange)
    return [[known[one] for one in batch] for batch in sent]


def compare_data(call, ours, theirs):
    a, b = theirs.batches(call), ours.batches(call)
    check(len(a) == len(b) == STEPS, f"{STEPS} passes each", (len(a), len(b)))
    found = [line for step in range(STEPS)
             for line in compare.differences(a[step], b[step], f"step {step + 1}: ")]
    check(not found, "the examples agree field by field", "\n".join(found[:10]))
    check(ours.rates() == theirs.rates() and len(ours.rates()) == STEPS, "the learning rates agree",
          (ours.rates(), theirs.rates()))


def compare_numbers(names, ours, theirs):
    for at, name in enumerate(names):
        worst = max(abs(a[at] - b[at]) / max(1, abs(b[at])) for a, b in zip(ours, theirs))
        check(len(ours) == len(theirs) == STEPS and worst <= CLOSE, f"{name} of all steps agrees to {CLOSE}",
              (worst, ours, theirs))
        print(f"# {name}: from {ours[0][at]:.4g} to {ours[-1][at]:.4g}, largest difference {worst:.1e}")


def compare_sft(comparison):
    rows = list(conversations())
    ours = comparison.ours("sft", rows, "--reduction", "mean")
    batches = order_of(ours.batches("forward_backward"), {encode(row["messages"]): row for row in rows}, 1)
    theirs = comparison.theirs("sft", batches)
    compare_data("forward_backward", ours, theirs)
    compare_numbers(["train/loss"], comparison.numbers("tnk-sft", "train/loss"),
                    comparison.numbers("log-sft", "train_mean_nll"))


def compare_dpo(comparison):
    rows = list(pairs())
    ours = comparison.ours("dpo", rows, "--beta", BETA)
    batches = order_of(ours.batches("forward"), {encode(row["chosen"]): row for row in rows}, 2)
    theirs = comparison.theirs("dpo", batches)
    compare_data("forward", ours, theirs)
    names = ["accuracy", "margin", "chosen_reward", "rejected_reward"]
    compare_numbers(["train/loss", *names], comparison.numbers("tnk-dpo", "train/loss", *names),
                    comparison.numbers("log-dpo", "dpo_loss", *names))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cache", type=pathlib.Path)
    args = parser.parse_args()
    environment = Environment(args.cache or pathlib.Path(
        os.environ.get("TNK_INTEROP_CACHE") or
        pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tnk-interop"))
    environment.prepare(VERSIONS[:1])
    tnk = args.build.resolve() / "src/tools/tnk/tnk"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_tokenizer(folder / MODEL)
        (folder / MODEL / "chat_template.jinja").write_text(TEMPLATE)
        with subprocess.Popen(
                [tnk, "local", "--port", "0", "--exit-with-stdin", "--data", folder / "data",
                 "--tokenizer", MODEL, "--model", MODEL],
                cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
            comparison = Comparison(folder, proxy.Recorder(url), tnk, environment.python)
            compare_sft(comparison)
            compare_dpo(comparison)
            server.stdin.close()
    plan()


if __name__ == "__main__":
    main()
