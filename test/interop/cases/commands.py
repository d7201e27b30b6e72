# SPDX-License-Identifier: MIT
"""`tnk` beside the client's own command line: the same commands to the same
server, and what the JSON of both says."""

import csv
import datetime
import io
import json
import re
import sys
import tempfile
from pathlib import Path

from kit import MODEL, case, check, done, need
from shell import has_command, hours, need_call, need_tnk, run_of, tinker, tnk

HERE = Path(__file__).resolve().parents[1]
sys.path += [str(HERE / "wire"), str(HERE.parent / "support")]
from compare import differences  # noqa: E402
from model_hub import ModelHub  # noqa: E402

HOUR_S = 3600
USAGE = "billing/usage/events?starting_on=2026-01-01T00:00:00Z&ending_before=2026-01-01T01:00:00Z"
# What is said differently, and why: part of a line of `differences`. Each must
# be found in some case, or the last one fails.
KNOWN = {
    ".total: only tnk": "a list that was cut says so",
    ".truncated: only tnk": "the same",
    ".user_metadata: official {}, tnk None": "to have none is one thing",
    ".repo_id: official 'tinker-": "whose it is, also when nobody named it",
    ".revision: only tnk": "where the weights went, also when nobody named a branch",
    ".commit: only tnk": "what has been made there",
    ".url: only tnk": "and where it can be seen",
}
GROWING = "gigabyte_hours"  # while one looks
found = set()


MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


def plain(value):
    """Moments as numbers: each client has its own way of writing them."""
    if isinstance(value, dict):
        return {k: "grows" if k == GROWING else plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, str) and MOMENT.fullmatch(value):
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    return value


def compare(theirs, ours):
    """Both texts say the same, but for what is known."""
    lines = ["." + line for line in differences(plain(json.loads(theirs)), plain(json.loads(ours)))]
    for line in lines:
        found.update(text for text in KNOWN if text in line)
    new = [line for line in lines if not any(text in line for text in KNOWN)]
    check(not new, "\n".join(new))


def both(*args):
    """A command that changes nothing, with each; what tnk said."""
    need_tnk(*args[:2])
    ours = tnk(*args, "--json").stdout
    compare(tinker("-f", "json", *args).stdout, ours)
    return json.loads(ours)


def saved_training(ctx):
    return ctx.once("saved by", lambda: ctx.new_training(
        user_metadata={"purpose": "commands", "é": "\u2713 [bold]"}))


def saved(ctx):
    """Checkpoints of every kind, and a run beside theirs."""

    def make():
        training = saved_training(ctx)
        paths = [done(training.save_state(f"state-{i}")).path for i in range(4)]
        paths.append(done(training.save_weights_for_sampler("sampler")).path)
        paths.append(done(training.save_weights_external("external")).path)
        ctx.new_training()
        return paths

    return ctx.once("saved for commands", make)


# ---- Questions ----------------------------------------------------------------


@case
def models(ctx):
    check(both("model", "list")["models"][0]["model_name"] == MODEL)
    check(both("model", "list", "BYTE")["models"])


@case
def runs(ctx):
    run = run_of(saved(ctx)[0])
    check(any(r["training_run_id"] == run for r in both("run", "list", "--limit", "0")["runs"]))
    both("run", "list")
    both("run", "list", "--limit", "1")
    both("run", "list", "-c", "id, owner,checkpoint_time")
    check(both("run", "info", run)["last_checkpoint"])


@case
def checkpoints(ctx):
    paths = saved(ctx)
    both("checkpoint", "list")
    both("checkpoint", "list", "--limit", "2")
    answer = both("checkpoint", "list", "--run-id", run_of(paths[0]))
    check({c["tinker_path"] for c in answer["checkpoints"]} >= set(paths))


@case
def one_checkpoint(ctx):
    """Of each kind."""
    for path in saved(ctx)[0], *saved(ctx)[4:]:
        both("checkpoint", "info", path)


@case
def storage(ctx):
    saved(ctx)
    both("billing", "checkpoint-storage")


@case
def usage(ctx):
    done(saved_training(ctx).forward_backward(ctx.data(1), "cross_entropy"))
    need_call(USAGE)
    both("billing", "usage", *hours())


@case
def usage_as_csv(ctx):
    need_call(USAGE)
    need_tnk("billing", "usage")
    args = ["billing", "usage", *hours(), "--csv", "-"]
    theirs, ours = ([plain(row) for row in csv.DictReader(io.StringIO(out, newline=""))]
                    for out in (tinker(*args).stdout, tnk(*args).stdout))
    check(theirs and theirs == ours, f"official {theirs}\ntnk {ours}")


@case
def who_asks(ctx):
    need_tnk("auth", "whoami")
    both("auth", "whoami")


@case
def a_trace(ctx):
    need_tnk("session", "export-trace")
    session = ctx.service.holder.get_session_id()
    need_call(f"sessions/{session}/trace_export")
    args = ["session", "export-trace", session]
    # The signature is another one each time.
    theirs, ours = (json.loads(out) for out in (tinker("-f", "json", *args, "--url-only").stdout,
                                                tnk(*args, "--url-only", "--json").stdout))
    check(set(theirs) == set(ours) and theirs["session_id"] == ours["session_id"], f"{theirs}, {ours}")
    with tempfile.TemporaryDirectory() as folder:
        for name, command in ("theirs", tinker), ("ours", tnk):
            command(*args, "--output", f"{folder}/{name}")
        check(Path(folder, "theirs").read_bytes() == Path(folder, "ours").read_bytes())


# ---- Changes --------------------------------------------------------------------


def seen(ctx, path):
    run = done(ctx.rest.list_checkpoints(run_of(path))).checkpoints
    return next((c for c in run if c.tinker_path == path), None)


@case
def publishing_and_expiry(ctx):
    path = saved(ctx)[1]
    need_tnk("checkpoint", "publish")
    for words, holds in (
        (["publish", path], lambda c: c.public),
        (["unpublish", path], lambda c: not c.public),
        (["set-ttl", path, "--ttl", str(2 * HOUR_S)], lambda c: c.expires_at is not None),
        (["set-ttl", path, "--remove"], lambda c: c.expires_at is None),
    ):
        tnk("checkpoint", *words)
        check(holds(seen(ctx, path)), str(words))


@case
def deletion(ctx):
    """One each, and one that is not there."""
    paths = saved(ctx)
    need_tnk("checkpoint", "delete")
    missing = paths[0] + "-not"
    answers = []
    for command, path, last in ((tinker, paths[2], ()), (tnk, paths[3], ())):
        given = ["checkpoint", "delete", "-y", path, missing]
        ran = tinker("-f", "json", *given) if command is tinker else tnk(*given, "--json", code=1)
        answers.append(json.loads(ran.stdout))
        check(seen(ctx, path) is None, path)
    theirs, ours = answers
    check(theirs["deleted_count"] == ours["deleted_count"] == 1, f"{theirs}, {ours}")
    check([f["tinker_path"] for f in theirs["failed"]] == [f["tinker_path"] for f in ours["failed"]] == [missing],
          f"{theirs}, {ours}")


@case
def deletion_by_kind(ctx):
    need_tnk("checkpoint", "delete")
    training = ctx.new_training()
    answers = []
    for command in tinker, tnk:
        run = run_of([done(training.save_state(f"by-kind-{i}")).path for i in range(2)][0])
        done(training.save_weights_for_sampler(f"left-{command.__name__}"))
        given = ["checkpoint", "delete", "--run-id", run, "--type", "weights", "--after", "2020-01-01", "-y"]
        ran = tinker("-f", "json", *given) if command is tinker else tnk(*given, "--json")
        answers.append(ran.stdout)
    compare(*answers)


# ---- Weights ----------------------------------------------------------------------


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


@case
def download(ctx):
    need_tnk("checkpoint", "download")
    need(has_command("checkpoint", "download"), "not in this version")
    for path in saved(ctx)[5], saved(ctx)[0]:
        with tempfile.TemporaryDirectory() as theirs, tempfile.TemporaryDirectory() as ours:
            out = [json.loads(tinker("-f", "json", "checkpoint", "download", path, "-o", theirs).stdout),
                   json.loads(tnk("checkpoint", "download", path, "-o", ours, "--json").stdout)]
            for answer, folder in zip(out, (theirs, ours)):
                answer["destination"] = str(Path(answer["destination"]).resolve().relative_to(Path(folder).resolve()))
            compare(*map(json.dumps, out))
            check(tree(theirs) == tree(ours) and "adapter_model.safetensors" in str(list(tree(ours))),
                  f"{list(tree(theirs))}, {list(tree(ours))}")


HEAD = re.compile(rb"\A---\n(.*?)^---$", re.S | re.M)


def pushed(hub, args, command, *before):
    """Push, to a hub where nothing is; the answer, the calls, the files, and the
    head of the card, whose sentences are each one's own. Without the owner, whom
    the official command leaves out where nobody named a repository."""
    hub.reset()
    with tempfile.TemporaryDirectory() as home:
        out = command(*before, *args, **hub.env(home)).stdout
    files = dict(hub.files)
    card = files.pop("README.md", b"")
    return out, [(call[0], call[1].replace("/owner/", "/")) for call in hub.calls], files, sorted(HEAD.match(card)[1].splitlines()) if card else []


@case
def push(ctx):
    """By default names, and as one likes."""
    need_tnk("checkpoint", "push-hf")
    path = saved(ctx)[5]
    with ModelHub(token="hf_0123456789") as hub:
        for options in [], ["-r", "mine/adapter", "--public", "--commit-message", "m", "--create-pr",
                            "--no-model-card", "--allow-pattern", "*.json",
                            "--allow-pattern", "*.safetensors", "--ignore-pattern", "*_config*"]:
            args = ["checkpoint", "push-hf", path, *options]
            theirs = pushed(hub, args, tinker, "-f", "json")
            ours = pushed(hub, [*args, "--json"], tnk)
            compare(theirs[0], ours[0])
            # Before its download tnk asks who it is, and whose checkpoint is there;
            # and it makes the branch, which the official command takes to exist.
            # The hub checks the head of the other one's card.
            made = [call for i, call in enumerate(theirs[1])
                    if call[1] != "/api/validate-yaml" and (i == 0 or call != theirs[1][i - 1])]
            own = [call for call in ours[1][2:] if "/branch/" not in call[1]]
            check(made == own, f"official {made}\ntnk {own}")
            check(theirs[2:] == ours[2:], f"official {theirs[2:]}\ntnk {ours[2:]}")


@case
def push_over_another_checkpoint(ctx):
    need_tnk("checkpoint", "push-hf")
    with ModelHub(token="hf_0123456789") as hub, tempfile.TemporaryDirectory() as home:
        hub.files["README.md"] = b"---\ntinker_path: tinker://other:train:0/weights/a\n---\n"
        args = ["checkpoint", "push-hf", saved(ctx)[5], "--repo", "mine/adapter"]
        for command in tinker, tnk:
            said = command(*args, code=1, **hub.env(home)).stderr
            check("tinker://other:train:0/weights/a" in said, said)
            check(list(hub.files) == ["README.md"], str(hub.files))


# ---- Credentials -------------------------------------------------------------------


@case
def login_and_logout(ctx):
    """A key that is typed where there is no terminal."""
    need_tnk("auth", "login")
    stores = []
    for command, args in (tinker, []), (tnk, ["--key-stdin"]):
        with tempfile.TemporaryDirectory() as home:
            env = {"HOME": home, "TINKER_API_KEY": ""}
            file = Path(home, ".tinker", "credentials.json")
            ran = command("auth", "login", *args, typed="tml-interop-typed\n", **env)
            check("tml-interop-typed" not in ran.stdout + ran.stderr, "the key is shown")
            stores.append(json.loads(file.read_text()))
            # What one has stored, the other one uses.
            other = tnk if command is tinker else tinker
            check("yes" in other("auth", "status", **env).stdout, "it is used")
            command("auth", "logout", **env)
            check(json.loads(file.read_text())["keys"] == {}, file.read_text())
    theirs, ours = stores
    for record in ours["keys"].values():
        check(record.pop("base_url") == ctx.url, "tnk binds it to its server")
    check(theirs == ours, f"official {theirs}\ntnk {ours}")


# ---- Failures -----------------------------------------------------------------------


@case
def failures(ctx):
    """Exit statuses differ: README.md. Both say nothing on standard output, but
    for the document that --json promises."""
    need_tnk("run", "info")
    missing = ["run", "info", "nobody:train:0"]
    check(tinker(*missing, code=1).stdout == "")
    check(tnk(*missing, code=4).stdout == "")
    check("error" in json.loads(tnk(*missing, "--json", code=4).stdout))
    # Nobody could answer.
    tinker("checkpoint", "delete", saved(ctx)[0], code=1)
    tnk("checkpoint", "delete", saved(ctx)[0], code=2)
    for wrong in ["run", "list", "-c", "nonsense"], ["checkpoint", "set-ttl", saved(ctx)[0]], ["run", "infos"]:
        need_tnk(wrong[0])
        check(tinker(*wrong, code=None).returncode != 0)
        tnk(*wrong, code=2)
    tnk("run", "list", "--retries", "0", code=5, TINKER_BASE_URL="http://127.0.0.1:1")


@case
def every_known_difference_is_there(ctx):
    need_tnk("run", "list")
    need_tnk("checkpoint", "list")
    check(found == set(KNOWN), f"no longer differs: {set(KNOWN) - found}")
