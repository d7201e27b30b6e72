#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""This project's programs against TuFT, a server of other people that reads every
request strictly.

    python3 tuft.py BUILD_DIR [--cache FOLDER]

The examples train, save, continue and sample there; `tnk conform` looks at the
server; the official client, in the version that TuFT wants, works at the same time;
and the server is killed and started again, with its files. TuFT comes from PyPI into
a cache outside the tree. Skips with 77, and the reason, where that does not work.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from kit import Process, reserve

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
import own_venv  # noqa: E402
from tap import check, plan  # noqa: E402

TUFT = "0.2.2"
# Without the machine-learning packages, for which standin/ is there.
PACKAGES = ["fastapi>=0.133,<0.137", "httpx", "numpy>=2", "nvidia-ml-py", "omegaconf",
            "opentelemetry-api", "opentelemetry-sdk", "opentelemetry-exporter-otlp",
            "opentelemetry-instrumentation-fastapi", "opentelemetry-instrumentation-logging",
            "protobuf", "psutil", "tinker==0.25.0", "typer", "uvicorn[standard]"]
KEY, MODEL = "tml-tuft", "tnk/byte-lm"

# What conform finds of this version. Another set fails: the server, or we, have
# changed.
DIFFERS = set("""
call-archive call-delete-checkpoint call-get-sampler call-publish call-run call-run-checkpoints
call-session call-unpublish http-zstd model-unknown-pass model-unknown-save model-unknown-step
pass-weights sample-nothing sample-stop-token sample-unknown sampler-odd-path save-dots save-slash
weights-delete weights-odd-path weights-unknown
""".split())


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def install(folder):
    """The Python that has TuFT."""
    try:
        return own_venv.make(folder, *PACKAGES, alone=[f"tuft=={TUFT}"])
    except own_venv.Unreachable as e:
        skip(f"PyPI cannot be reached or does not have it: {e}")


class Server:
    """TuFT with its files in `folder`."""

    def __init__(self, python, folder):
        self.python, self.folder, self.port = python, folder, reserve()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "tuft.log"
        (folder / "model").mkdir()
        (folder / "model/config.json").write_text(json.dumps(
            {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": 512}))
        (folder / "tuft.yaml").write_text(f"""
model_owner: local
checkpoint_dir: {folder}/checkpoints
supported_models:
  - model_name: {MODEL}
    model_path: {folder}/model
    max_model_len: 2048
    max_lora_rank: 64
    max_loras: 4
authorized_users:
  {KEY}: user
persistence:
  mode: FILE
  file_path: {folder}/state.json
""")
        self.start()

    def start(self):
        env = {**os.environ, "PYTHONPATH": str(HERE / "standin"), "TUFT_CPU_TEST": "1",
               "TUFT_HOME": str(self.folder), "HOME": str(self.folder), "no_proxy": "*"}
        self.process = Process(self.python, "-m", "tuft", "launch", "--port", self.port, "--config",
                               self.folder / "tuft.yaml", "--log-level", "warning", log=self.log, env=env)
        self.wait()

    def wait(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        until = time.monotonic() + 120
        while time.monotonic() < until and self.process.process.poll() is None:
            with contextlib.suppress(OSError):
                with opener.open(self.url + "/api/v1/healthz", timeout=5):
                    return
            time.sleep(0.2)
        raise RuntimeError("TuFT does not answer:\n" + self.process.tail())

    def kill(self):
        self.process.stop(9)


class Programs:
    def __init__(self, build, server, folder):
        self.build, self.server, self.folder = build, server, folder
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith("TINKER_") and not name.lower().endswith("_proxy")}
        self.env.update(TINKER_BASE_URL=server.url, TINKER_API_KEY=KEY, HOME=str(folder))

    def run(self, *command, timeout=120):
        return subprocess.run([str(word) for word in command], env=self.env, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False)

    def example(self, name, *args):
        ran = self.run(self.build / "examples" / name, *args)
        check(ran.returncode == 0, f"{name} ends well", ran)
        check("nan" not in ran.stdout.lower(), f"{name} shows numbers", ran.stdout)
        return ran.stdout

    def sft(self, steps):
        return self.example("sft", self.folder / "chats.jsonl", self.folder / "sft", steps, 2)


def examples(programs):
    folder = programs.folder
    (folder / "chats.jsonl").write_text("".join(json.dumps({"messages": [
        {"role": "user", "content": f"hi {i}"},
        {"role": "assistant", "content": "yo"}]}) + "\n" for i in range(40)))
    programs.example("hello")
    programs.example("train_text", "--steps", 4, "--batch", 2, "--length", 32, "--rank", 8,
                     "--model", MODEL, "--json")
    said = programs.sft(4)
    check("step 4 loss" in said and "resuming" not in said, "sft trains and saves", said)
    said = programs.sft(6)
    check("resuming at step 4\n" in said and "step 6 loss" in said,
          "and continues from its ledger", said)
    programs.example("rl", folder / "rl", 1)
    said = programs.example("rl", folder / "rl", 2)
    check("iteration 1" in said and "iteration 0" not in said, "so does rl", said)


def conform(programs):
    ran = programs.run(programs.build / "src/tools/tnk/tnk", "conform", "--spend", "--json", "--model", MODEL)
    document = json.loads(ran.stdout)
    # This server ends connections after some errors.
    lost = [rule for rule in document["rules"] if "no complete response" in rule["detail"]]
    check(not lost, "each rule has its answer", lost)
    differs = {rule["id"] for rule in document["rules"] if rule["verdict"] == "differs"}
    check(differs == DIFFERS, "conform finds what is known",
          [rule for rule in document["rules"] if rule["id"] in differs ^ DIFFERS] or differs ^ DIFFERS)


def killed_at(programs, server, words, *command):
    """Kill the server after a line that contains the words, and start it again. Returns the status,
    the output and the errors of the program."""
    errors = programs.folder / "errors"
    with open(errors, "w") as file:
        program = subprocess.Popen(["stdbuf", "-oL", *map(str, command)], env=programs.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file)
    said, is_killed = "", False
    with program.stdout as lines:
        for line in lines:
            said += line
            if words in line and not is_killed:
                is_killed = True
                server.kill()
                server.start()
    check(is_killed, f"the server is killed after \"{words}\"", said)
    return program.wait(120), said, errors.read_text()


def older_weights(programs, server):
    """Killed between steps, the server comes back with its sessions and models, and with the weights
    of an earlier step."""
    status, said, errors = killed_at(
        programs, server, "step 5 loss", programs.build / "examples/sft",
        programs.folder / "chats.jsonl", programs.folder / "killed", 8, 2)
    found = re.search(r"resuming at step ([46])\n", said)
    check(status == 0 and found, "a client with recovery restores the saved state", (status, said, errors))
    # The stand-in for the weights is one for all models, so only the order of the steps shows it.
    parts = [[int(n) for n in re.findall(r"^step (\d+) loss", part, re.M)]
             for part in said.split(found[0])]
    check(parts[0] == list(range(1, parts[0][-1] + 1)) and parts[1] == list(range(int(found[1]) + 1, 9)),
          "before the next pass, and repeats what was lost", parts)
    status, said, errors = killed_at(programs, server, "loss", programs.build / "examples/hello")
    check(status != 0 and "its weights may differ" in errors,
          "a client without recovery is stopped by TNK_QUEUE_MEMORY_LOST", (status, said, errors))


def official(python, programs, results):
    results.append(programs.run(python, HERE / "official.py", programs.server.url, MODEL, 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path)
    args = parser.parse_args()
    cache = args.cache or pathlib.Path(
        os.environ.get("TNK_INTEROP_CACHE") or
        pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                     pathlib.Path.home() / ".cache") / "tnk-interop")
    cache.mkdir(parents=True, exist_ok=True)
    python = install(cache / "env-tuft")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = Server(python, folder)
        try:
            programs = Programs(args.build.resolve(), server, folder)
            results = []
            beside = threading.Thread(target=official, args=(python, programs, results))
            beside.start()
            examples(programs)
            beside.join()
            check(results[0].returncode == 0, "the official client works at the same time", results[0])
            losses = json.loads(results[0].stdout.splitlines()[-1])["losses"]
            check(losses[-1] < losses[0], "and its loss falls", losses)
            conform(programs)
            server.kill()
            server.start()
            said = programs.sft(8)
            check("resuming at step 6\n" in said and "step 8 loss" in said,
                  "a run continues after the server was killed", said)
            older_weights(programs, server)
        finally:
            server.process.stop(9)
    plan()


if __name__ == "__main__":
    main()
