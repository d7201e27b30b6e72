#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk checkpoint download and save-external, against the local server.

usage: run_weights.py TNK_COMMAND

Output is TAP, see test/support/tap.py. What a download lives through is shown
by test/weights; here it is the command around it.
"""
import json
import pathlib
import re
import signal
import subprocess
import tempfile

from console import CLEAN, TNK, Canned, Local, check, plan

RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
IDENTITY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
FILES = {"adapter_config.json", "adapter_model.safetensors"}


def folder_of(path):
    return path.removeprefix("tinker://").replace("/", "_")


def save_external(local, path):
    got = local("checkpoint", "save-external", path, "--name", "hf")
    check(got.returncode == 0 and re.fullmatch(r"tinker://\S+/external_weights/hf\n", got.stdout),
          "save-external prints where they are", got)
    said = local.json("checkpoint", "save-external", path, "--name", "hf", "--ttl", "2h")
    check(said["source_path"] == path and said["tinker_path"].endswith("/external_weights/hf"),
          "and in JSON", said)
    info = local.json("checkpoint", "info", said["tinker_path"])
    check(info["checkpoint_type"] == "external" and info["expires_at"], "with their time", info)
    for wrong in ([], ["--name", "x", "--ttl", "5"], ["--name", ""]):
        refused = local("checkpoint", "save-external", path, *wrong)
        check(refused.returncode == 2 and not refused.stdout, f"refused: {wrong}", refused)
    for form in (), ("--json",):
        refused = local("checkpoint", "save-external", path, "--name", "x", "--recipient", IDENTITY, *form)
        check(refused.returncode == 2 and "secret key" in refused.stdout + refused.stderr and
              IDENTITY[15:25] not in refused.stdout + refused.stderr,
              "a secret key is no recipient, and is not told", refused)
    refused = local("checkpoint", "save-external", got.stdout.strip(), "--name", "x")
    check(refused.returncode == 2, "not of what is external already", refused)
    return got.stdout.strip()


def S_7_weights_are_downloaded(local, external, state, sampler, where):
    got = local("checkpoint", "download", external, "-o", where)
    folder = where / folder_of(external)
    check(got.returncode == 0 and {f.name for f in folder.iterdir()} == FILES,
          "the files come", got)
    check(re.search(rf"^Downloaded to +{folder}$", got.stdout, re.M) and
          str(sum(f.stat().st_size for f in folder.iterdir())), "and are told", got)
    check(not list(where.glob("*.incomplete")), "nothing else is left")
    before = {f.name: f.read_bytes() for f in folder.iterdir()}
    got = local("checkpoint", "download", external, "-o", where)
    check(got.returncode == 6 and str(folder) in got.stderr and not got.stdout and
          "--force" in got.stderr,
          "a folder that is there is not touched", got)
    (folder / "mine").write_text("x")
    said = local.json("checkpoint", "download", external, "-o", where, "--force")
    check(said == {"checkpoint_path": external, "destination": str(folder),
                   "file_size_bytes": sum(map(len, before.values()))}, "--force, in JSON", said)
    check({f.name: f.read_bytes() for f in folder.iterdir()} == before, "replaces it")
    said = local.json("checkpoint", "download", state, "-o", where / "deep" / "er")
    folder = where / "deep" / "er" / folder_of(state)
    check({f.name for f in folder.iterdir()} == FILES, "weights to train from, too", said)
    got = local("checkpoint", "download", sampler, "-o", where, "--archive")
    check(got.returncode == 0 and {f.name for f in (where / folder_of(sampler)).iterdir()} ==
          FILES | {"checkpoint_complete"}, "an archive is of any kind", got)
    left = local.json("checkpoint", "list", "--limit", "0")["checkpoints"]
    check(not [c for c in left if c["tinker_path"].endswith("/download")],
          "and what was saved for that is gone", left)
    for wrong in ([sampler], ["nonsense"], [external, "--parallel", "0"],
                  [external, "--archive", "--identity", "x"]):
        got = local("checkpoint", "download", "-o", where, *wrong)
        check(got.returncode == 2 and not got.stdout, f"refused: {wrong}", got)
    for path in ("tinker://nowhere/weights/x", "tinker://nowhere/external_weights/x"):
        got = local("checkpoint", "download", path, "-o", where / "no" / "where")
        check(got.returncode == 4 and not (where / "no").exists(),
              f"{path}: a checkpoint that is not there makes nothing", got)
    got = local("checkpoint", "download", external + "-none", "-o", where)
    check(got.returncode == 4 and not (where / folder_of(external + "-none")).exists(),
          "what there is not", got)


def encrypted(local, state, where):
    """For an age key, which is in a file as age-keygen writes it."""
    path = local.json("checkpoint", "save-external", state, "--name", "sealed",
                      "--recipient", RECIPIENT)["tinker_path"]
    got = local("checkpoint", "download", path, "-o", where)
    folder = where / folder_of(path)
    check({f.name for f in folder.iterdir()} == {name + ".age" for name in FILES},
          "without the key they come as they are", got)
    key = where / "key.txt"
    key.write_text(f"# created: 2026-01-02\n# public key: {RECIPIENT}\n{IDENTITY}\n")
    got = local("checkpoint", "download", path, "-o", where, "--force", "--identity", key)
    check(got.returncode == 0 and {f.name for f in folder.iterdir()} == FILES and
          json.loads((folder / "adapter_config.json").read_text()), "with it decrypted", got)
    check(IDENTITY not in got.stdout + got.stderr, "and it is not told")
    for wrong, status in (("none.txt", 6), ("empty.txt", 2)):
        (where / "empty.txt").write_text("# nothing\n")
        got = local("checkpoint", "download", path, "-o", where, "--force", "-i", where / wrong)
        check(got.returncode == status and not got.stdout and
              {f.name for f in folder.iterdir()} == FILES, f"{wrong} opens nothing", got)


def P11_10_a_signal_leaves_the_old_files(where):
    """Also those that --force would replace."""
    path = "tinker://r/external_weights/hf"
    folder = where / folder_of(path)
    folder.mkdir()
    (folder / "old").write_text("old")
    call = "GET training_runs/r/checkpoints/external_weights/hf/external_weights_urls"
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with Canned({"GET slow": None}) as server:
            server.answers[call] = {"urls": {"a": server.url + "/api/v1/slow?signature=canary"},
                                    "expires": "2999-01-01T00:00:00Z"}
            process = subprocess.Popen([TNK, "checkpoint", "download", path, "-o", where, "--force"],
                                       env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not server.asked("GET slow") and process.poll() is None:
                pass
            process.send_signal(number)
            said = process.communicate(timeout=60)
        check(process.returncode == status and not said[0], number.name, (process.returncode, said))
        check((folder / "old").read_text() == "old", "the old file is there")
        check("canary" not in said[1], "and the URL is not told", said)
        got = server.seen[-1]
        check("X-API-Key" not in got[2], "no key goes to it", got)


with tempfile.TemporaryDirectory() as tmp:
    tmp = pathlib.Path(tmp)
    with Local() as local:
        model = local.model(local.session())
        state = local.save(model, "first", 1)
        sampler = local.save(model, "out", 2, "save_weights_for_sampler")
        S_7_weights_are_downloaded(local, save_external(local, state), state, sampler, tmp)
        encrypted(local, state, tmp)
    P11_10_a_signal_leaves_the_old_files(tmp)
plan()
