#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One cache, two libraries: Python's huggingface_hub and `tnk tokenize`.

    python3 cache.py --tnk BUILD/src/tools/tnk/tnk

A stand-in for the hub on this machine has one model. Each library fetches it
into a cache, and the other one finds it there without asking anybody. Skips
where huggingface_hub is not installed.
"""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
from tap import check, plan  # noqa: E402

MODEL = "org/model"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEXT = b"Hello, world"


class Server(BaseHTTPRequestHandler):
    """Answers as the real hub does; a large file is somewhere else."""

    protocol_version = "HTTP/1.1"
    files = {}
    asked = []

    def log_message(self, *_):
        pass

    def answer(self, status, headers, body=b""):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.asked.append((self.command, self.path))
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[0] == "blobs":
            body = next(b for b in self.files.values()
                        if hashlib.sha256(b).hexdigest() == parts[1])
            self.answer(200, {"ETag": '"of-the-store"'}, body)
            return
        if parts[:2] != MODEL.split("/") or parts[2] != "resolve":
            self.answer(401, {"X-Error-Code": "RepoNotFound"})
            return
        name = "/".join(parts[4:])
        headers = {"X-Repo-Commit": COMMIT}
        if name not in self.files:
            self.answer(404, {**headers, "X-Error-Code": "EntryNotFound"})
            return
        body = self.files[name]
        if name == "tokenizer.json":
            digest = hashlib.sha256(body).hexdigest()
            self.answer(302, {**headers, "X-Linked-Etag": f'"{digest}"',
                              "X-Linked-Size": str(len(body)),
                              "Location": f"{self.store}/blobs/{digest}"})
            return
        digest = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
        self.answer(200, {**headers, "ETag": f'"{digest}"',
                          "Content-Length": str(len(body))}, body)


def serve():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def environment(cache, endpoint, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    return {**env, "HF_HUB_CACHE": str(cache), "HF_ENDPOINT": endpoint,
            "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", **more}


def tokenize(tnk, env):
    return subprocess.run([tnk, "tokenize", "--model", MODEL], input=TEXT,
                          capture_output=True, env=env, timeout=60)


def python(code, env):
    """Runs in a process of its own: the library reads its settings once."""
    head = (f"from huggingface_hub import *\nM, C = {MODEL!r}, {COMMIT!r}\n")
    return subprocess.run([sys.executable, "-c", head + code], env=env,
                          capture_output=True, text=True, timeout=60)


READ_ALL = """
import os
from huggingface_hub.file_download import _CACHED_NO_EXIST
for revision in (None, C):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        at = try_to_load_from_cache(M, name, revision=revision)
        assert isinstance(at, str), (name, revision, at)
        assert at == hf_hub_download(M, name, revision=revision,
                                     local_files_only=True)
        assert os.path.getsize(at) > 0
folder = snapshot_download(M, local_files_only=True)
assert sorted(os.listdir(folder)) == ["tokenizer.json",
                                      "tokenizer_config.json"], folder
info = scan_cache_dir()
assert not info.warnings, info.warnings
repo, = info.repos
revision, = repo.revisions
assert (repo.repo_id, revision.commit_hash, set(revision.refs)) == \\
    (M, C, {"main"}), repo
assert len(revision.files) == 2 and repo.nb_files == 2
"""

FETCH_ALL = """
for name in ("tokenizer.json", "tokenizer_config.json"):
    hf_hub_download(M, name)
try:
    hf_hub_download(M, "none.json")
except Exception as error:
    assert "Entry Not Found" in str(error), error
"""

REMOVE = """
info = scan_cache_dir()
info.delete_revisions(C).execute()
assert not scan_cache_dir().repos
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tnk", required=True)
    tnk = parser.parse_args().tnk
    try:
        import huggingface_hub
    except ImportError:
        print("1..0 # SKIP huggingface_hub is not installed")
        return
    print(f"# huggingface_hub {huggingface_hub.__version__}")
    data = HERE.parent.parent / "tokenizers" / "data"
    Server.files = {"tokenizer.json": (data / "qwen2.json").read_bytes(),
                    "tokenizer_config.json": b"{}\n"}
    endpoint = serve()
    Server.store = serve()
    nobody = "http://127.0.0.1:9"
    with tempfile.TemporaryDirectory() as top:
        ours, theirs, both = (pathlib.Path(top) / n for n in "abc")

        done = tokenize(tnk, environment(ours, endpoint))
        check(done.returncode == 0, "tnk fetches", done.stderr)
        ids = done.stdout
        env = environment(ours, nobody)
        done = python(READ_ALL, env)
        check(done.returncode == 0, "Python finds what tnk has fetched",
              done.stderr)
        done = python(REMOVE, env)
        check(done.returncode == 0, "and can remove it", done.stderr)

        done = python(FETCH_ALL, environment(theirs, endpoint))
        check(done.returncode == 0, "Python fetches", done.stderr)
        done = tokenize(tnk, environment(theirs, nobody, HF_HUB_OFFLINE="1"))
        check(done.stdout == ids, "tnk finds what Python has fetched",
              done.stderr)
        n_asked = len(Server.asked)
        done = tokenize(tnk, environment(theirs, endpoint))
        check(done.stdout == ids and not any(
            method == "GET" for method, _ in Server.asked[n_asked:]),
            "and downloads nothing again", Server.asked[n_asked:])
        listing = sorted(p.relative_to(theirs) for p in theirs.rglob("*")
                         if ".locks" not in p.parts and p.is_file())
        done = tokenize(tnk, environment(ours, endpoint))
        mine = sorted(p.relative_to(ours) for p in ours.rglob("*")
                      if p.is_file())
        extra = {pathlib.Path("models--org--model/.no_exist") / COMMIT / n
                 for n in ("none.json",)} | {pathlib.Path("CACHEDIR.TAG")}
        check(set(listing) - set(mine) <= extra,
              "both lay it out in the same way",
              f"{set(listing) ^ set(mine)}")

        # Side by side, several times over, into one empty cache.
        env = environment(both, endpoint)
        for _ in range(3):
            threads = []
            results = []
            for run in (lambda: tokenize(tnk, env),
                        lambda: python(FETCH_ALL, env)) * 2:
                threads.append(threading.Thread(
                    target=lambda run=run: results.append(run())))
                threads[-1].start()
            for thread in threads:
                thread.join()
            check(all(r.returncode == 0 for r in results),
                  "side by side", [r.stderr for r in results])
            done = python(READ_ALL + REMOVE, env)
            check(done.returncode == 0, "the cache is whole", done.stderr)
    plan()


main()
