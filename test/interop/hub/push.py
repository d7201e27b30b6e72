#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Weights pushed to a hub: by tnk, and by Python's huggingface_hub.

    python3 push.py --tool BUILD/test/interop/push_tool [--gib 5]

A stand-in for the hub on this machine takes both, with files at once and in
parts: the same requests in effect, the same repository in the end. Skips where
huggingface_hub is not installed. --gib pushes a file of that many GiB (sparse)
with tnk alone, in parts, and tells how much memory that took.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
from model_hub import ModelHub  # noqa: E402
from tap import check, plan  # noqa: E402

CHECKPOINT = "tinker://run-1:train:0/weights/final"
REPO = "owner/my-adapter"
TOKEN = "hf_0123456789"
MAX_MIB = 64

# What the official command does with its directory; it says what is private in
# another member, which is of the library's newest version.
PYTHON = """
import sys
from huggingface_hub import HfApi, hf_hub_download
api = HfApi()
api.whoami()
api.create_repo(repo_id={repo!r}, private=True, exist_ok=True)
try:
    hf_hub_download(repo_id={repo!r}, filename="README.md")
except Exception:
    pass
api.upload_folder(folder_path=sys.argv[1], repo_id={repo!r}, path_in_repo="",
                  commit_message="Upload",
                  ignore_patterns=["checkpoint_complete"])
"""


def in_effect(calls):
    """What was asked, without what may differ: order of files, repeats of a
    look at what is missing, members that only one of the two sends."""
    out = []
    for method, path, body in calls:
        if path == "/api/repos/create":
            private = body.pop("private", None) or \
                body.pop("visibility", None) == "private"
            body = {"name": body["name"], "owner": body["organization"],
                    "private": private}
        elif "/preupload/" in path:
            body = sorted((f["path"], f["sample"], f["size"])
                          for f in body["files"])
        elif path.endswith("/objects/batch"):
            body = [{"oid": o["oid"], "size": o["size"]}
                    for o in body["objects"]]
        elif path.endswith("/commit/main"):
            body = sorted(json.dumps(line, sort_keys=True) for line in body)
        elif path.startswith("/complete/"):
            body = (body["oid"], body["parts"])
        call = (method, path, body)
        if path.endswith("/yaml") or "validate" in path:
            continue  # Python has the hub check the card's head.
        if not out or out[-1] != call:
            out.append(call)
    return out


def environment(hub, folder):
    return {**os.environ, **hub.env(folder / "home")}


def make_adapter(folder):
    (folder / "sub").mkdir(parents=True)
    (folder / "adapter_config.json").write_text(
        '{"base_model_name_or_path": "org/Model-8B"}')
    (folder / "README.md").write_text(f"---\ntags:\n- tinker\n---\n{CHECKPOINT}\n")
    (folder / "adapter_model.safetensors").write_bytes(os.urandom(3_000_001))
    (folder / "checkpoint_complete").write_bytes(b"")
    (folder / "sub/notes.txt").write_text("notes\n")


def compare(tool, hub, folder, part_size):
    env = environment(hub, folder)
    how = "in parts" if part_size else "at once"
    hub.reset(part_size)
    theirs = subprocess.run(
        [sys.executable, "-c", PYTHON.format(repo=REPO), folder / "adapter"],
        env=env, capture_output=True, text=True, timeout=120)
    check(theirs.returncode == 0, f"huggingface_hub pushes files {how}",
          theirs.stderr)
    their_calls, their_files = in_effect(hub.calls), dict(hub.files)
    hub.reset(part_size)
    ours = subprocess.run([tool, folder / "adapter", CHECKPOINT, REPO],
                          env=env, capture_output=True, text=True, timeout=120)
    check(ours.returncode == 0, f"tnk pushes files {how}", ours.stderr)
    check(hub.files == their_files and len(their_files) == 4,
          f"the repositories are the same, {how}", (hub.files, their_files))
    our_calls = in_effect(hub.calls)
    check(our_calls == their_calls, f"the requests are the same, {how}",
          "\n".join(str(c)[:300] for c in
                    ["ours:", *our_calls, "theirs:", *their_calls]))


def push_large(tool, hub, folder, gib):
    """Nothing is written here: a sparse file has no blocks."""
    make_adapter(folder / "large")
    size = gib << 30
    with open(folder / "large/adapter_model.safetensors", "wb") as file:
        file.truncate(size)
    hub.reset(64 << 20)
    done = subprocess.run([tool, folder / "large", CHECKPOINT, REPO],
                          env=environment(hub, folder),
                          capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check(done.returncode == 0, f"{gib} GiB are pushed in parts", done.stderr)
    parts = [c for c in hub.calls if c[0] == "PUT"]
    whole = next(iter(hub.sums.values())).hexdigest()
    check(len(parts) == size // (64 << 20) and
          sum(c[2]["size"] for c in parts) == size and
          hub.files["adapter_model.safetensors"] == whole,
          "all of it came, in order")
    print(f"# peak of memory: {after // 1024} MiB")
    check(after < MAX_MIB * 1024, f"in less than {MAX_MIB} MiB of memory",
          after)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--gib", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ModelHub(TOKEN) as hub:
        folder = pathlib.Path(name)
        if args.gib:
            push_large(args.tool, hub, folder, args.gib)
            plan()
            return
        try:
            import huggingface_hub  # noqa: F401
        except ImportError:
            print("1..0 # SKIP huggingface_hub is not installed")
            return
        make_adapter(folder / "adapter")
        compare(args.tool, hub, folder, 0)
        compare(args.tool, hub, folder, 1_000_000)
        check(all(c[2]["token"] is None for c in hub.calls if c[0] == "PUT"),
              "the store sees no token")
    plan()


if __name__ == "__main__":
    main()
