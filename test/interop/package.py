#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package tnk for Python in the place of the official client, with its types.

    python3 package.py --build BUILD_DIR [--cache FOLDER] [--groups GROUP,...]

1. The calls of wire/calls.json: requests are compared with the official client's.
2. The cases of cases/ in the settings of run.py, with `python -m tnk run`.
3. The example of the official client, and the cookbook's rl_loop: their losses must
   be those of the official client, digit for digit.

Skips, with the reason, where PyPI cannot be reached or the package was not built.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from run import MAIN, SETTINGS, VERSIONS, Clients, Server, Tally, run_setting, skip_all  # noqa: E402

sys.path[:0] = [str(HERE / "cookbook"), str(HERE / "wire")]
import rl_loop  # noqa: E402
from proxy import Recorder  # noqa: E402

EXAMPLE = """
import tinker
from tinker import types

service_client = tinker.ServiceClient()
training_client = service_client.create_lora_training_client(base_model="tnk/byte-lm", rank=8, seed=7)
examples = [("banana split", "anana-bay plit-say"), ("quantum physics", "uantum-qay ysics-phay")]
data = []
for text, answer in examples:
    ids = list(f"English: {text}\\nPig Latin: {answer}".encode())
    weights = [0.0] * (len(ids) - len(answer)) + [1.0] * len(answer)
    data.append(types.Datum(model_input=types.ModelInput.from_ints(tokens=ids[:-1]),
                            loss_fn_inputs=dict(weights=weights[1:], target_tokens=ids[1:])))
for _ in range(6):
    passed = training_client.forward_backward(data, "cross_entropy")
    stepped = training_client.optim_step(types.AdamParams(learning_rate=1e-3))
    passed, stepped = passed.result(), stepped.result()
    print("loss", passed.metrics, [o["logprobs"].tolist() for o in passed.loss_fn_outputs], stepped.metrics)
sampling_client = training_client.save_weights_and_get_sampling_client(name="pig-latin")
prompt = types.ModelInput.from_ints(list(b"English: coffee break\\nPig Latin:"))
params = types.SamplingParams(max_tokens=20, temperature=0.0, stop=["\\n"])
result = sampling_client.sample(prompt=prompt, sampling_params=params, num_samples=4).result()
print("sample", [(s.tokens, s.logprobs, s.stop_reason) for s in result.sequences])
"""


class Package(Clients):
    """The package in front of the official client."""

    def __init__(self, cache, site):
        super().__init__(cache)
        self.site = site

    def command(self, script):
        return [str(self.python), "-m", "tnk", "run", str(script)]

    def path(self, version):
        return [str(self.site), *super().path(version)]


def run_wire(clients, tnk, tally):
    command = [str(clients.python), str(HERE / "wire" / "wire.py"), "--tnk", tnk, "--python",
               str(clients.python), "--package", str(clients.site)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    print(ran.stdout + ran.stderr, end="")
    found = re.search(r"^(\d+) passed, (\d+) failed$", ran.stdout, re.M)
    tally.outcomes["passed"] += int(found[1]) if found else 0
    tally.outcomes["failed"] += int(found[2]) if found else 1


def compare(tally, label, official, package):
    """Two outputs that must be equal and not empty."""
    outcome = "passed" if official and official == package else "failed"
    tally.add(outcome, label, 0, f"official:\n{official}\npackage:\n{package}")


def output(server, command, path):
    env = {**os.environ, "TINKER_BASE_URL": server.url, "TINKER_API_KEY": "tml-local", "TINKER_TELEMETRY": "0",
           "no_proxy": "*", "PYTHONPATH": str(path)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, check=False)
    return ran.stdout if ran.returncode == 0 else ran.stderr


def run_example(clients, tnk, tally):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "example.py"
        script.write_text(EXAMPLE)
        outputs = []
        for command, path in [([str(clients.python), str(script)], ""), (clients.command(script), clients.site)]:
            server = Server(tnk, [])
            outputs.append(output(server, command, path))
            server.stop()
    compare(tally, "the example has the same losses and samples", *outputs)


def losses(folder):
    """Of a run of rl_loop: its numbers, except times."""
    lines = (folder / "log" / "metrics.jsonl").read_text().splitlines()
    return "\n".join(json.dumps({k: v for k, v in json.loads(line).items() if not k.startswith("time")})
                     for line in lines)


class Seeder(Recorder):
    """Gives each sample a seed of its prompt: the recipe gives none, and a server draws
    other ones in each run."""

    def forward(self, request):
        if request.path.endswith("/asample"):
            body = json.loads(request.body)
            body["sampling_params"]["seed"] = zlib.crc32(json.dumps(body["prompt"]).encode())
            request = request._replace(body=json.dumps(body).encode())
        return super().forward(request)


def run_rl_loop(cache, site, build, tally):
    environment = rl_loop.Environment(cache)
    environment.prepare(VERSIONS[:1])
    found = []
    for prefix, path in [((), ""), (("-m", "tnk", "run"), str(site))]:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            ran = rl_loop.run_once(folder, build, environment.python, prefix, path, lambda url: Seeder(url).url)
            found.append(losses(folder) if ran.returncode == 0 else ran.stderr[-2000:])
    compare(tally, "rl_loop has the same losses", *found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cache", type=pathlib.Path, default=rl_loop.default_cache())
    parser.add_argument("--groups", type=lambda t: t.split(","), default=MAIN)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    build = args.build.resolve()
    extension = build / "src/bindings/python/_native.abi3.so"
    if not extension.exists():
        skip_all("the extension was not built")
    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        site = pathlib.Path(name)
        shutil.copytree(HERE.parents[1] / "src/bindings/python/tnk", site / "tnk",
                        ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(extension, site / "tnk" / "_native.abi3.so")
        clients = Package(args.cache, site)
        clients.prepare(VERSIONS[:1])
        (args.cache / "home").mkdir(exist_ok=True)
        tnk = str(build / "src/tools/tnk/tnk")
        args.tnk = tnk
        for setting in SETTINGS[2:5]:
            run_setting(clients, args, setting, VERSIONS[0], tally)
        if not args.only:
            run_wire(clients, tnk, tally)
            run_example(clients, tnk, tally)
            run_rl_loop(args.cache, site, build, tally)
    tally.print(VERSIONS[:1])
    sys.exit(1 if tally.outcomes["failed"] else 0)


if __name__ == "__main__":
    main()
