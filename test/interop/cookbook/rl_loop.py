#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cookbook's recipe rl_loop, as it is on PyPI, against `tnk local`.

    python3 rl_loop.py --build BUILD_DIR [--cache FOLDER]

The recipe runs STEPS steps with its default loss, stable_reinforce. Its data set
and its tokenizer come from folders made here. torch is the stand-in of this
project; everything else comes from PyPI. Skips, with the reason, where PyPI cannot
be reached.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
sys.path.insert(0, str(HERE.parent))
from run import Clients, VERSIONS  # noqa: E402
from tap import check, plan  # noqa: E402

COOKBOOK = "0.6.1"
PACKAGES = ["transformers==5.24.0", "datasets==5.2.0", "chz", "blobfile", "cloudpickle",
            "pillow", "rich", "termcolor", "tqdm", "tiktoken", "safetensors", "sympy",
            "pylatexenc", "math-verify", "aiohttp", "tml-renderers"]
MODEL = "Qwen/Qwen3-8B"  # the recipe knows its renderer by this name
STEPS = 5
N_ANSWERS = 340


class Environment(Clients):
    """A virtual environment of its own: the cookbook wants much that the client
    does not."""

    def __init__(self, cache):
        super().__init__(cache)
        self.python = cache / "env-cookbook/bin/python"

    def prepare(self, versions):
        # The cookbook's requirements name torch, which is several gigabytes.
        self.make(f"tinker=={versions[0]}", *PACKAGES, alone=[f"tinker-cookbook=={COOKBOOK}"])


def write_tokenizer(folder):
    """A token for each byte, the marks of the chat format, and many tokens that are
    a whole answer. A model without training draws the latter often, so that the
    recipe finds right and wrong answers in each group."""
    kept = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [b for b in range(256) if b not in kept]
    letters = {b: chr(b) for b in kept} | {b: chr(256 + i) for i, b in enumerate(moved)}
    added = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    added += ["\\boxed{%d}%s" % (i % 2 + 1, "!" * (i // 2)) for i in range(N_ANSWERS)]
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": 256 + i, "content": text, "single_word": False,
                          "lstrip": False, "rstrip": False, "normalized": False,
                          "special": i < 3} for i, text in enumerate(added)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False,
                          "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False,
                    "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "merges": [],
                  "vocab": {letters[b]: b for b in range(256)}}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}))


def write_data(folder):
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: main\n  data_files:\n"
        "  - split: train\n    path: train.jsonl\n---\n")
    (folder / "train.jsonl").write_text("".join(
        json.dumps({"question": f"What is {i} - {i - i % 2 - 1}?",
                    "answer": f"#### {i % 2 + 1}"}) + "\n" for i in range(2 * STEPS)))


def run_recipe(folder, url, python, prefix=(), path=""):
    env = {**os.environ, "TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local",
           "TINKER_TELEMETRY": "0", "no_proxy": "*", "HOME": str(folder),
           "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1",
           "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
           "PYTHONPATH": path + os.pathsep + str(HERE.parent / "standin")}
    # Folders in the working directory have the names of the data set and the model.
    return subprocess.run(
        [python, *prefix, "-m", "tinker_cookbook.recipes.rl_loop", f"model_name={MODEL}",
         f"log_path={folder / 'log'}", "batch_size=2", "group_size=8", "max_tokens=8",
         f"max_steps={STEPS}", "save_every=2", "learning_rate=0.01"],
        cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        timeout=300, check=False)


def default_cache():
    return pathlib.Path(
        os.environ.get("TNK_INTEROP_CACHE") or
        pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                     pathlib.Path.home() / ".cache") / "tnk-interop")


def run_once(folder, build, python, prefix=(), path="", before=lambda url: url):
    """The recipe against a server of its own; `prefix` and `path` choose the client.
    before(url) puts a proxy before the server."""
    write_tokenizer(folder / MODEL)
    write_data(folder / "openai" / "gsm8k")
    with subprocess.Popen(
            [build.resolve() / "src/tools/tnk/tnk", "local", "--port", "0",
             "--exit-with-stdin", "--data", folder / "data", "--tokenizer", MODEL,
             "--model", MODEL],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True) as server:
        url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
        ran = run_recipe(folder, before(url), python, prefix, path)
        server.stdin.close()
    return ran


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cache", type=pathlib.Path)
    args = parser.parse_args()
    cache = args.cache or default_cache()
    environment = Environment(cache)
    environment.prepare(VERSIONS[:1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ran = run_once(folder, args.build, environment.python)
        check(ran.returncode == 0, "the recipe ends well",
              (ran.stderr + ran.stdout)[-4000:])
        log = folder / "log"
        config = json.loads((log / "config.json").read_text())
        check(config["loss_fn"] == "stable_reinforce", "with its default loss", config)
        check("skipping training step" not in ran.stderr + ran.stdout,
              "each step trains", ran.stderr)
        steps = [json.loads(line) for line in (log / "metrics.jsonl").read_text().splitlines()]
        check([step["progress/batch"] for step in steps] == list(range(STEPS)),
              f"{STEPS} steps are done", steps)
        saved = [json.loads(line)["name"]
                 for line in (log / "checkpoints.jsonl").read_text().splitlines()]
        check(saved == ["000002", "000004", "final"], "and its states are saved", saved)
    plan()


if __name__ == "__main__":
    main()
