#!/usr/bin/env python3
"""Weights pushed to a hub: by tnk, and by Python's huggingface_hub.

    python3 push.py --tool BUILD/test/interop/push_tool [--gib 5]

A stand-in for the hub on this machine takes both, with files at once and in
parts: the same requests in effect, the same repository in the end. Skips where
huggingface_hub is not installed. --gib pushes a file of that many GiB (sparse)
with tnk alone, in parts, and tells how much memory that took.
"""
import argparse
import base64
import collections
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
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


class Hub(BaseHTTPRequestHandler):
    """Keeps what it is given; large files are checked, not kept."""

    protocol_version = "HTTP/1.1"
    part_size = 0
    calls = []
    store = {}
    parts = collections.defaultdict(dict)
    files = {}
    sums = {}

    def log_message(self, *_):
        pass

    def pieces(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while (n := int(self.rfile.readline(), 16)) > 0:
                yield self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            piece = self.rfile.read(min(left, 1 << 20))
            left -= len(piece)
            yield piece

    def answer(self, status, body=b"", headers=()):
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/api/whoami-v2":
            self.calls.append(("GET", path, None))
            self.answer(200, {"name": "owner", "type": "user", "orgs": []})
        elif path.endswith("/README.md"):
            # Asked for in one way or another, and found missing.
            self.calls.append(("LOOK", path, None))
            self.answer(404, b"", [("X-Error-Code", "EntryNotFound"),
                                   ("X-Repo-Commit", "0" * 40)])
        else:
            self.answer(200, {"id": REPO, "sha": "0" * 40, "siblings": []})

    do_HEAD = do_GET

    def do_PUT(self):
        name, _, part = self.path.partition("?part=")
        sum_, size = hashlib.sha256(), 0
        whole = self.sums.setdefault(name, hashlib.sha256())
        for piece in self.pieces():
            size += len(piece)
            sum_.update(piece)
            whole.update(piece)
        self.calls.append(("PUT", name + part, {
            "token": self.headers.get("Authorization"), "size": size,
            "sum": sum_.hexdigest()}))
        self.answer(200, b"", [("ETag", f'"{sum_.hexdigest()[:8]}"')])

    def base(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def actions(self, oid, size):
        base = self.base()
        if not self.part_size:
            return {"upload": {"href": f"{base}/store/{oid}"}}
        count = -(-size // self.part_size)
        header = {str(i + 1): f"{base}/store/{oid}?part={i + 1}"
                  for i in range(count)}
        return {"upload": {"href": f"{base}/complete/{oid}", "header": {
            "chunk_size": str(self.part_size), **header}}}

    def do_POST(self):
        path = self.path.split("?")[0]
        text = b"".join(self.pieces())
        lines = [json.loads(line) for line in text.splitlines() if line]
        body = lines if path.endswith("/commit/main") else \
            lines[0] if lines else None
        self.calls.append(("POST", path, body))
        if "/preupload/" in path:
            self.answer(200, {"files": [
                {"path": f["path"], "shouldIgnore": False,
                 "uploadMode": "lfs" if f["path"].endswith(".safetensors")
                 else "regular"} for f in body["files"]]})
        elif path.endswith("/objects/batch"):
            self.answer(200, {"transfer": "multipart" if self.part_size
                              else "basic", "objects": [
                {**o, "actions": self.actions(o["oid"], o["size"])}
                for o in body["objects"]]})
        elif path.endswith("/commit/main"):
            for line in body[1:]:
                value = line["value"]
                self.files[value["path"]] = \
                    value.get("oid") or base64.b64decode(value["content"])
            self.answer(200, {"commitOid": "1" * 40, "success": True,
                              "commitUrl": f"{self.base()}/{REPO}/commit/{'1' * 40}"})
        elif path == "/api/repos/create":
            self.answer(200, {"url": f"{self.base()}/{REPO}"})
        else:
            self.answer(200, {})


def reset(part_size):
    Hub.part_size = part_size
    for kept in (Hub.calls, Hub.files, Hub.sums):
        kept.clear()


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


def environment(server, folder):
    return {**os.environ, "HF_ENDPOINT":
            f"http://127.0.0.1:{server.server_address[1]}",
            "HF_TOKEN": TOKEN, "HF_HOME": str(folder / "home"),
            "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1", "no_proxy": "*"}


def make_adapter(folder):
    (folder / "sub").mkdir(parents=True)
    (folder / "adapter_config.json").write_text(
        '{"base_model_name_or_path": "org/Model-8B"}')
    (folder / "README.md").write_text(f"---\ntags:\n- tinker\n---\n{CHECKPOINT}\n")
    (folder / "adapter_model.safetensors").write_bytes(os.urandom(3_000_001))
    (folder / "checkpoint_complete").write_bytes(b"")
    (folder / "sub/notes.txt").write_text("notes\n")


def compare(tool, server, folder, part_size):
    env = environment(server, folder)
    how = "in parts" if part_size else "at once"
    reset(part_size)
    theirs = subprocess.run(
        [sys.executable, "-c", PYTHON.format(repo=REPO), folder / "adapter"],
        env=env, capture_output=True, text=True, timeout=120)
    check(theirs.returncode == 0, f"huggingface_hub pushes files {how}",
          theirs.stderr)
    their_calls, their_files = in_effect(Hub.calls), dict(Hub.files)
    reset(part_size)
    ours = subprocess.run([tool, folder / "adapter", CHECKPOINT, REPO],
                          env=env, capture_output=True, text=True, timeout=120)
    check(ours.returncode == 0, f"tnk pushes files {how}", ours.stderr)
    check(Hub.files == their_files and len(their_files) == 4,
          f"the repositories are the same, {how}", (Hub.files, their_files))
    our_calls = in_effect(Hub.calls)
    check(our_calls == their_calls, f"the requests are the same, {how}",
          "\n".join(str(c)[:300] for c in
                    ["ours:", *our_calls, "theirs:", *their_calls]))


def push_large(tool, server, folder, gib):
    """Nothing is written here: a sparse file has no blocks."""
    make_adapter(folder / "large")
    size = gib << 30
    with open(folder / "large/adapter_model.safetensors", "wb") as file:
        file.truncate(size)
    reset(64 << 20)
    done = subprocess.run([tool, folder / "large", CHECKPOINT, REPO],
                          env=environment(server, folder),
                          capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check(done.returncode == 0, f"{gib} GiB are pushed in parts", done.stderr)
    parts = [c for c in Hub.calls if c[0] == "PUT"]
    whole = next(iter(Hub.sums.values())).hexdigest()
    check(len(parts) == size // (64 << 20) and
          sum(c[2]["size"] for c in parts) == size and
          Hub.files["adapter_model.safetensors"] == whole,
          "all of it came, in order")
    print(f"# peak of memory: {after // 1024} MiB")
    check(after < MAX_MIB * 1024, f"in less than {MAX_MIB} MiB of memory",
          after)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--gib", type=int, default=0)
    args = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if args.gib:
            push_large(args.tool, server, folder, args.gib)
            plan()
            return
        try:
            import huggingface_hub  # noqa: F401
        except ImportError:
            print("1..0 # SKIP huggingface_hub is not installed")
            return
        make_adapter(folder / "adapter")
        compare(args.tool, server, folder, 0)
        compare(args.tool, server, folder, 1_000_000)
        check(all(c[2]["token"] is None for c in Hub.calls if c[0] == "PUT"),
              "the store sees no token")
    plan()


main()
