#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk checkpoint push-hf, from the local server to a stand-in for the hub.

usage: run_push.py TNK_COMMAND

Output is TAP, see test/support/tap.py. What a push lives through is shown by
test/hub, what a download does by test/weights; here it is the command around
them. Beside the official one: test/interop/cases/commands.py.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from console import CLEAN, TNK, Canned, Local, Terminal, check, plan, try_all
from model_hub import COMMIT, ModelHub

TOKEN = "hf_canary0123456789"
FILES = {"adapter_config.json", "adapter_model.safetensors"}
WEIGHTS = "adapter_model.safetensors"
BRANCH = "external_weights-hf"


class Place:
    """A folder for what is there meanwhile, and the hub's variables."""

    def __init__(self, hub, path):
        self.room = pathlib.Path(path) / "room"
        self.room.mkdir(exist_ok=True)
        self.env = {**hub.env(path, TOKEN), "TMPDIR": str(self.room)}

    def check_empty(self, what):
        check(not os.listdir(self.room), f"{what}: nothing is left", os.listdir(self.room))


def posted(hub, end):
    """The bodies of the calls of that name."""
    return [call[2] for call in hub.calls if call[0] == "POST" and call[1].endswith(end)]


def S_8_weights_are_pushed(local, hub, place, path):
    run = path.removeprefix("tinker://").partition("/")[0]
    repo = "owner/tinker-byte-lm-" + re.sub("[^A-Za-z0-9.]+", "-", run)
    got = local("checkpoint", "push-hf", path, env=place.env)
    check(got.returncode == 0, "weights are pushed", got)
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in got.stdout.splitlines())
    check(rows == {"Checkpoint Path": path, "Repo ID": repo, "Revision": BRANCH, "Public": "No",
                   "URL": f"{hub.url}/{repo}/commit/{COMMIT}"}, "and where, is told", got)
    check(set(hub.files) == FILES | {"README.md"}, "the files and a card", hub.files)
    card = hub.files["README.md"].decode()
    check(f"tinker_path: {path}\n" in card and "base_model: tnk/byte-lm\n" in card and
          "LoRA rank: 2\n" in card and "attn=True" in card, "which tells what they are", card)
    made, = posted(hub, "/repos/create")
    check(made["name"] == repo.removeprefix("owner/") and made["private"] is True,
          "to a private repository", made)
    check(any(call[1] == f"/api/models/{repo}/commit/{BRANCH}" for call in hub.calls),
          "to a branch of its own")
    check(f"Pushing to {repo}, branch {BRANCH}." in got.stderr and
          re.search(rf"^Uploading {WEIGHTS}: (\S+ \S+) of \1$", got.stderr, re.M),
          "what is done meanwhile is told beside it", got)
    check(TOKEN not in got.stdout + got.stderr, "the token is not")
    place.check_empty("pushed")


def in_json(local, hub, place, state):
    """Weights to train from, and all options."""
    hub.reset()
    said = local("checkpoint", "push-hf", state, "-r", "mine", "--revision", "v1", "--public",
                 "--commit-message", "as I say", "--no-model-card", "--ignore-pattern", "*.json",
                 "--json", env=place.env)
    check(said.returncode == 0 and json.loads(said.stdout) == {
        "checkpoint_path": state, "repo_id": "owner/mine", "revision": "v1", "public": True,
        "commit": COMMIT, "url": f"{hub.url}/owner/mine/commit/{COMMIT}"}, "in JSON", said)
    lines = [json.loads(line) for line in said.stderr.splitlines() if line.startswith("{")]
    check(lines and all(line["progress"]["unit"] == "bytes" for line in lines), "so is the progress",
          said)
    check(set(hub.files) == {WEIGHTS}, "without what is not wanted", hub.files)
    made, = posted(hub, "/repos/create")
    check(made["name"] == "mine" and not made.get("private"), "public", made)
    head = posted(hub, "/commit/v1")[0][0]
    check(head["value"]["summary"] == "as I say", "with that message", head)
    hub.reset()
    said = local.json("checkpoint", "push-hf", state, "--repo=owner/mine", "--create-pr",
                      "--allow-pattern", "*.json", "--allow-pattern", "README.md", env=place.env)
    check(said["revision"] == "main" and said["url"] == f"{hub.url}/owner/mine/discussions/1" and
          set(hub.files) == FILES - {WEIGHTS} | {"README.md"}, "as a pull request", said)
    left = local.json("checkpoint", "list", "--limit", "0")["checkpoints"]
    check(not [c for c in left if c["tinker_path"].endswith("/download")],
          "what was saved for that is gone", left)
    place.check_empty("in JSON")


def refused_before_anything_is_loaded(local, hub, place, path):
    """A folder that cannot be had shows that none was needed."""
    hub.reset()
    nowhere = {**place.env, "TMPDIR": "/dev/null/x"}

    def refuse(status, words, *args, **env):
        got = local("checkpoint", "push-hf", *args, env={**nowhere, **env})
        check(got.returncode == status and words in got.stderr and not got.stdout and
              not hub.files and TOKEN not in got.stderr, f"refused: {words}", got)
        return got

    refuse(6, "cannot create a folder in /dev/null/x", path)
    hub.files["README.md"] = b"of tinker://otherun-1:train:0/weights/x\n"
    got = local("checkpoint", "push-hf", path, "--json", env=nowhere)
    check(got.returncode == 1 and json.loads(got.stdout)["error"]["code"] == "TNK_ECONFLICT",
          "another checkpoint's repository, in JSON", got)
    check("--repo" in got.stderr, "with what to do", got)
    hub.files.clear()
    refuse(2, "the repository", path, "-r", "a b")
    refuse(2, "the revision", path, "--revision", "../x")
    refuse(3, "HF_TOKEN", path, HF_TOKEN="hf_wrong")
    refuse(3, "no token", path, HF_TOKEN="")
    refuse(2, "offline", path, HF_HUB_OFFLINE="1")
    refuse(5, "HF_ENDPOINT", path, "--retries", "0", HF_ENDPOINT="http://127.0.0.1:1")
    for wrong in (["tinker://r/sampler_weights/x"], ["nonsense"], [], [path, "--repo", ""]):
        got = local("checkpoint", "push-hf", *wrong, env=nowhere)
        check(got.returncode == 2 and not got.stdout, f"refused: {wrong}", got)
    got = local("checkpoint", "push-hf", path + "-none", env=place.env)
    check(got.returncode == 4 and not hub.files, "what there is not", got)
    place.check_empty("refused")


def P11_10_a_signal_leaves_nothing(local, hub, place, path):
    hub.reset()
    hub.holds = True
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        hub.held.clear()
        process = subprocess.Popen([TNK, "checkpoint", "push-hf", path],
                                   env={**CLEAN, **local.env, **place.env},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        check(hub.held.wait(60), "the weights are on their way")
        process.send_signal(number)
        said = process.communicate(timeout=60)
        check(process.returncode == status and not said[0] and "canary" not in said[1],
              number.name, (process.returncode, said))
        place.check_empty(number.name)
    hub.holds = False
    check(not posted(hub, f"/commit/{BRANCH}"), "and no commit was made")


def left_in(got):
    """The folder that a push which has failed names."""
    found = re.search(r"^The downloaded files are kept in (.*); run the same command", got.stderr, re.M)
    check(got.returncode == 1 and found, "what was downloaded is kept", got)
    return pathlib.Path(found[1])


def fail_at_the_end(local, hub, place, path):
    """The folder that is left has one more file, by which it is known again."""
    hub.reset()
    hub.fails = "/commit/"
    got = local("checkpoint", "push-hf", path, "--retries", "0", env=place.env)
    hub.fails = ""
    folder = left_in(got)
    check(folder.parent == place.room and folder.stat().st_mode & 0o777 == 0o700 and
          {file.name for file in (folder / "adapter").iterdir()} >= FILES, "all of it, and safely",
          list(folder.iterdir()))
    (folder / "adapter/more.json").write_text("{}")
    hub.reset()
    return folder


def push_again(local, hub, place, path, goes_on, what):
    got = local("checkpoint", "push-hf", path, env=place.env)
    check(got.returncode == 0 and ("Resuming with" in got.stderr) == goes_on and
          set(hub.files) == FILES | {"README.md"} | ({"more.json"} if goes_on else set()), what,
          (got, hub.files))


def what_a_push_has_downloaded_is_not_lost(local, hub, place, path):
    folder = fail_at_the_end(local, hub, place, path)
    push_again(local, hub, place, path, True, "the same push goes on with it")
    place.check_empty("gone on with")
    folder = fail_at_the_end(local, hub, place, path)
    about = folder / "about"
    about.write_text(re.sub(r"\n\d+", r"\n7", about.read_text()))
    push_again(local, hub, place, path, False, "not if something else has been saved since")
    place.check_empty("saved since")
    folder = fail_at_the_end(local, hub, place, path)
    folder.chmod(0o755)
    push_again(local, hub, place, path, False, "not if others could have written there")
    check(folder.is_dir(), "what is not ours stays")
    folder.chmod(0o700)
    with open_folder(folder) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        push_again(local, hub, place, path, False, "not if somebody is at it")
    push_again(local, hub, place, path, True, "but then")
    place.check_empty("at last")


@contextlib.contextmanager
def open_folder(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def what_has_come_of_a_download_is_not_lost(hub, place):
    hub.reset()
    path = "tinker://run-1:train:0/external_weights/hf"
    files = {"GET adapter_config.json": (200, b"{}", {"ETag": '"c"'})}
    listed = {"checkpoint_id": "external_weights/hf", "checkpoint_type": "external",
              "time": "2026-01-01T00:00:00Z", "tinker_path": path, "public": False,
              "size_bytes": 3}
    with Canned({**files, "GET training_runs/run-1:train:0/checkpoints": {"checkpoints": [listed]},
                 "POST weights_info": 404}) as server:
        server.answers["GET training_runs/run-1:train:0/checkpoints/external_weights/hf/"
                       "external_weights_urls"] = {
            "urls": {name: f"{server.url}/api/v1/{name}?signature=canary" for name in FILES},
            "expires": "2999-01-01T00:00:00Z"}

        def after_the_other(_):
            """Both files are fetched at once. This one fails when the other one is there."""
            while not any(file.stat().st_size == 2 for file in place.room.glob("*/*/files/adapter_config.json")):
                time.sleep(0.001)
            return 500
        server.answers[f"GET {WEIGHTS}"] = after_the_other
        got = server("checkpoint", "push-hf", path, "--retries", "0", env=place.env)
        folder = left_in(got)
        server.answers[f"GET {WEIGHTS}"] = (200, b"x", {"ETag": '"w"'})
        check(not hub.files and (folder / "adapter.incomplete").is_dir(), "of a part of it too",
              list(folder.iterdir()))
        server.seen.clear()
        got = server("checkpoint", "push-hf", path, env=place.env)
        asked = [headers.get("Range") for call, _, headers in server.seen
                 if call.startswith("GET adapter_config.json")]
    check(got.returncode == 0 and set(hub.files) == FILES | {"README.md"} and asked == ["bytes=1-"],
          "and gone on with", (got, asked))
    place.check_empty("in two goes")


def what_the_service_does_not_tell_the_card_does_not(hub, place):
    hub.reset()
    path = "tinker://run-1:train:0/external_weights/hf"
    with Canned({"GET adapter_config.json": b"{}", f"GET {WEIGHTS}": b"x",
                 "POST weights_info": 404}) as server:
        server.answers["GET training_runs/run-1:train:0/checkpoints/external_weights/hf/"
                       "external_weights_urls"] = {
            "urls": {name: f"{server.url}/api/v1/{name}?signature=canary" for name in FILES},
            "expires": "2999-01-01T00:00:00Z"}
        got = server("checkpoint", "push-hf", path, env=place.env)
    card = hub.files.get("README.md", b"").decode()
    check(got.returncode == 0 and "does not report" in got.stderr and path in card and
          "base_model: unknown" in card and "rank" not in card, "the model is not known", got)
    check("canary" not in got.stdout + got.stderr, "no signed URL is shown", got)


def a_bar(local, hub, place, path):
    def bar():
        hub.reset()
        terminal = Terminal("checkpoint", "push-hf", path, env={**local.env, **place.env})
        check(terminal.end() == 0 and re.search(rf"Uploading {WEIGHTS}  \[#+\]", terminal.text),
              "a bar at a terminal", terminal.text)

    return bar


with tempfile.TemporaryDirectory() as tmp, ModelHub(TOKEN) as hub, Local() as local:
    place = Place(hub, tmp)
    model = local.model(local.session())
    state = local.save(model, "first", 1)
    external = local.save(model, "hf", 2, "save_weights_external")
    S_8_weights_are_pushed(local, hub, place, external)
    in_json(local, hub, place, state)
    refused_before_anything_is_loaded(local, hub, place, external)
    P11_10_a_signal_leaves_nothing(local, hub, place, external)
    what_a_push_has_downloaded_is_not_lost(local, hub, place, external)
    what_has_come_of_a_download_is_not_lost(hub, place)
    what_the_service_does_not_tell_the_card_does_not(hub, place)
    try_all([a_bar(local, hub, place, external)])
plan()
