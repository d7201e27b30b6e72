#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""External weights as other programs see them.

    python3 adapter.py --tnk BUILD/src/tools/tnk/tnk [--venv FOLDER]

Trains a model of `tnk local`, fetches the adapter that it saves for others, reads
it with the library `safetensors`, and runs the model in numpy, from the published
description of its base alone. What it predicts must be what the server reports
for the same weights. Skips where numpy or safetensors is not installed; with
--venv they are put into that environment, which is made if it is missing, unless
PyPI is out of reach.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from own_venv import enter_or_skip, skip_all  # noqa: E402
from tap import check, plan  # noqa: E402

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--tnk", required=True)
ARGS.add_argument("--venv", type=pathlib.Path)
ARGS = ARGS.parse_args()
if ARGS.venv:
    enter_or_skip(ARGS.venv, "numpy", "safetensors")
try:
    import numpy as np
    import safetensors.numpy
except ImportError as missing:
    skip_all(missing)

TEXT = b"the quick brown fox jumps over the lazy dog and runs; " * 6
DIM, FF, LAYERS, HEADS, LOGITS, VOCAB = 128, 512, 2, 4, 272, 258
CHANNEL, SEED, GOLDEN = 32, 20240811, 0x9E3779B97F4A7C15
MODULES = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
           "self_attn.o_proj", "mlp.up_proj", "mlp.down_proj"]
GAINS = [0.2, 0.2, 1, 1, 1, 1]
SHAPES = [(DIM, DIM)] * 4 + [(DIM, FF), (FF, DIM)]
CENTRE = [1, 2, 3, 0]
SLOPE = [[6, 6, 6, 0.5], [6, 6, 6, 0.02]]
WINDOW = [32, 256]


# ---- The base, as src/tools/local/lm/base.c makes it ----

def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(shape, deviation, stream):
    """Values in float32, as the server has them."""
    n = shape[0] * shape[1]
    first = mix(np.array([SEED + GOLDEN], np.uint64)) ^ mix(~np.array([stream], np.uint64))
    states = first + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    unit = (mix(states) >> np.uint64(40)).astype(np.float32) * np.float32(2.0 ** -23)
    bound = np.float32(deviation) * np.float32(1.7320508)
    return (bound * (unit - np.float32(1))).reshape(shape)


def make_base():
    embed = uniform((VOCAB, DIM), 1, 0)
    embed[:, DIM - CHANNEL:] = 0
    embed[:, 0] = 2
    matrices = {}
    for i in range(LAYERS * 6):
        shape = SHAPES[i % 6]
        w = uniform(shape, np.float32(GAINS[i % 6]) / np.sqrt(np.float32(shape[0])), 1 + i)
        if i % 6 == 4:
            w[0] = -0.6
        if i % 6 in (3, 5):
            w[:, 0] = 0
            w[:, DIM - CHANNEL:] = 0
        matrices[f"model.layers.{i // 6}.{MODULES[i % 6]}"] = w
    head = uniform((DIM, LOGITS), np.float32(5) / np.sqrt(np.float32(DIM)), 1 + LAYERS * 6)
    head[:DIM - CHANNEL] = 0
    matrices["lm_head"] = head[:, :VOCAB]
    return embed, matrices


# ---- The forward pass ----

def rms(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def attend(q, k, v, layer):
    n = len(q)
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    seen = (distance >= 0) & (distance < WINDOW[layer])
    out = np.zeros_like(q)
    for h in range(HEADS):
        part = slice(h * DIM // HEADS, (h + 1) * DIM // HEADS)
        score = q[:, part] @ k[:, part].T / np.sqrt(DIM // HEADS)
        score = score - SLOPE[layer][h] * np.abs(distance - CENTRE[h])
        score = np.where(seen, score, -np.inf)
        p = np.exp(score - score.max(-1, keepdims=True))
        out[:, part] = p / p.sum(-1, keepdims=True) @ v[:, part]
    return out


def logprobs(embed, w, tokens, targets):
    x = embed[tokens].astype(np.float64)
    for layer in range(LAYERS):
        m = [w[f"model.layers.{layer}.{name}"] for name in MODULES]
        y = rms(x)
        x = x + attend(y @ m[0], y @ m[1], y @ m[2], layer) @ m[3]
        x = x + np.maximum(rms(x) @ m[4], 0) ** 2 @ m[5]
    logits = rms(x) @ w["lm_head"]
    logits = logits - logits.max(-1, keepdims=True)
    logits = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return logits[np.arange(len(targets)), targets]


def apply(matrices, config, tensors):
    """The product of the adapter, added to the base."""
    scale = config["lora_alpha"] / config["r"]
    out = {}
    for name, w in matrices.items():
        key = f"base_model.model.{name}"
        out[name] = w.astype(np.float64)
        if key + ".lora_A.weight" in tensors:
            a = tensors.pop(key + ".lora_A.weight").astype(np.float64)
            b = tensors.pop(key + ".lora_B.weight").astype(np.float64)
            out[name] = out[name] + scale * (b @ a).T
    return out


# ---- The server ----

class Local:
    def __init__(self, tnk):
        self.process = subprocess.Popen(
            [tnk, "local", "--json-results", "--exit-with-stdin"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def call(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data,
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def done(self, path, body):
        promise = self.call(path, body)
        while True:
            result = self.call("retrieve_future", {"request_id": promise["request_id"]})
            if result.get("type") != "try_again":
                return result
            time.sleep(0.01)

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


def datum(tokens, targets):
    return {"model_input": {"chunks": [{"type": "encoded_text", "tokens": tokens}]},
            "loss_fn_inputs": {"target_tokens": {"data": targets, "dtype": "int64"}}}


def fetch(local, path):
    run, kind, name = path[len("tinker://"):].split("/")
    urls = local.call(f"training_runs/{run}/checkpoints/{kind}/{name}/external_weights_urls")
    return {file: urllib.request.urlopen(url, timeout=60).read()
            for file, url in urls["urls"].items()}


def try_one(local, embed, matrices, rank, switches):
    tokens, targets = list(TEXT[:-1]), list(TEXT[1:])
    what = f"rank {rank}" + "".join(f", no {s}" for s, on in switches.items() if not on)
    data = {"data": [datum(tokens, targets)], "loss_fn": "cross_entropy"}
    session = local.call("create_session", {"tags": [], "user_metadata": {},
                                            "sdk_version": "0.38.0",
                                            "type": "create_session"})["session_id"]
    lora = {"rank": rank, "seed": 3} | {f"train_{s}": on for s, on in switches.items()}
    model = local.done("create_model", {"session_id": session, "base_model": "tnk/byte-lm",
                                        "lora_config": lora})["model_id"]
    for step in range(4):
        local.done("forward_backward", {"model_id": model, "seq_id": 2 * step + 1,
                                        "forward_backward_input": data})
        local.done("optim_step", {"model_id": model, "seq_id": 2 * step + 2,
                                  "adam_params": {"learning_rate": 0.01}})
    saved = local.done("save_weights_external", {"model_id": model, "seq_id": 9, "path": "e"})
    result = local.done("forward", {"model_id": model, "seq_id": 10, "forward_input": data})
    ours = np.array(result["loss_fn_outputs"][0]["logprobs"]["data"])
    files = fetch(local, saved["path"])
    check(sum(map(len, files.values())) == saved["size_bytes"], f"{what}: the sizes add up")
    config = json.loads(files["adapter_config.json"])
    tensors = dict(safetensors.numpy.load(files["adapter_model.safetensors"]))
    n = len(tensors)
    check(n == 2 * sum([switches["attn"] * 8, switches["mlp"] * 4, switches["unembed"] * 1]),
          f"{what}: two factors a matrix", n)
    theirs = logprobs(embed, apply(matrices, config, tensors), tokens, targets)
    check(not tensors, f"{what}: each factor belongs to a matrix", list(tensors))
    worst = np.abs(ours - theirs).max()
    check(worst < 2e-4, f"{what}: logprobs are the server's", worst)
    bare = logprobs(embed, matrices, tokens, targets)
    check(np.abs(ours - bare).max() > 0.1, f"{what}: the base alone has others")


def main():
    local = Local(ARGS.tnk)
    embed, matrices = make_base()
    try:
        for rank, off in [(1, []), (5, ["mlp"]), (32, ["attn"]), (16, ["unembed"])]:
            try_one(local, embed, matrices, rank,
                    {s: s not in off for s in ("attn", "mlp", "unembed")})
    finally:
        local.close()
    plan()


if __name__ == "__main__":
    main()
