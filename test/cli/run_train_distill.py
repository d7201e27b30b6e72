#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk train --method distill: a student approaches its teacher, and resumes after kills.

usage: run_train_distill.py TNK_COMMAND FOLDER_OF_TOKENIZERS

KILLS=20 makes so many for each row of the matrix. Output is TAP, see
test/support/tap.py.
"""
import json
import math
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from console import CLEAN, TNK, Local, check, forward, plan, scripted, tnk
from train_runs import Pair, chat, ended_in_the_middle, killed_apart, killed_local, metrics, weights, write

DISTILL = ("--method", "distill")
STEPS = 4
# Two batches in an epoch, so that the order of the prompts matters.
SHORT = ("--steps", STEPS, "--batch", 4, "--group-size", 2, "--answer-tokens", 3, "--learning-rate", "0.01",
         "--save-every", 2)


def lines(run):
    return [json.loads(line) for line in metrics(run).splitlines()]


def folders(run, kind):
    return sorted(path.name for path in (run / "served").glob(f"*/{kind}/*"))


def teach(folder):
    """A teacher that answers with few letters, and not with certainty."""
    run = folder / "teacher"
    data = write(folder / "chats.jsonl", [chat(f"{i % 8}?", "abab") for i in range(40)])
    got = tnk("train", data, "--local", "--run", run, "--steps", 4, "--batch", 8, "--schedule", "constant")
    check(got.returncode == 0, "a teacher", got)
    return run


def learns(folder, teacher):
    """The divergence falls, and the answers become those of the teacher."""
    data = write(folder / "few.jsonl", [{"prompt": f"{i}?"} for i in range(4)])
    run = folder / "learns"
    got = tnk("train", data, *DISTILL, "--teacher", teacher, "--local", "--run", run, "--steps", 9, "--answer-tokens", 4,
              "--group-size", 12, "--learning-rate", "0.01", "--schedule", "constant", "--sample", "1?")
    rows = lines(run)
    check(got.returncode == 0 and [row["step"] for row in rows] == [*range(1, 10)], "it trains", got)
    check(rows[0]["teacher_kl"] > 5 and rows[-1]["teacher_kl"] < 1, "it approaches the teacher", rows)
    # The model that was never trained gives each id the same probability.
    check(abs(rows[0]["entropy"] - 5.553) < 0.001 and rows[0]["answer_tokens"] == 4.0, "the first answers", rows[0])
    check(all(abs(row["kl"]) < 1e-4 for row in rows), "the samples of a step are of its weights", rows)
    check(all(math.isclose(row["train/loss"], row["teacher_kl"], rel_tol=1e-4, abs_tol=1e-4) for row in rows),
          "the loss is the divergence", rows)
    said = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    check([line["step"] for line in said] == [0, 9] and said[1]["text"].strip().startswith("abab"), "it answers as the teacher",
          said)
    check("teacher KL" in got.stderr, "its progress", got)
    check(folders(run, "sampler_weights") == ["save-1", "save-1"], "no other sampler weights stay",
          folders(run, "sampler_weights"))
    page = folder / "page.html"
    shown = tnk("report", run, "--output", page)
    check(shown.returncode == 0 and "teacher_kl" in page.read_text(), "the report has its curve", shown)


def certain(folder, data, teacher):
    """The loss of a student that gives its tokens the logprob 0."""
    run = folder / "certain"
    got = tnk("train", data, *DISTILL, "--teacher", teacher, "--local", "--run", run, *SHORT, "--steps", 7, "--learning-rate", 1,
              "--schedule", "constant")
    rows = lines(run)
    check(got.returncode == 0 and "entropy" not in rows[-1] and
          all(math.isclose(row["train/loss"] or 0, row["teacher_kl"], rel_tol=1e-4) for row in rows), "a certain student", rows)


def options(folder, data, teacher):
    """What the options do to a step whose answers are the same."""
    found = {}
    for name, more in (("", ()), ("factor", ("--kl-coefficient", 3)), ("discount", ("--discount", 0.5)),
                       ("ppo", ("--loss", "ppo")), ("group", ("--group-size", 3)), ("seed", ("--seed", 1)), ("nothing", ("--kl-coefficient", 0))):
        run = folder / f"options-{name}"
        got = tnk("train", data, *DISTILL, "--teacher", teacher, "--local", "--run", run, *SHORT, "--steps", 1, *more)
        check(got.returncode == 0, f"options {name}", got)
        found[name] = lines(run)[0]
    plain = found[""]
    check(plain["answer_tokens"] == 3 and plain["tokens"] == 8 * (20 + 3 - 1), "4 prompts with 2 answers", plain)
    check(found["group"]["tokens"] * 2 == plain["tokens"] * 3, "--group-size", found["group"])
    check(math.isclose(found["factor"]["train/loss"], 3 * plain["train/loss"], rel_tol=1e-4), "--kl-coefficient",
          (plain, found["factor"]))
    check(found["discount"]["teacher_kl"] == plain["teacher_kl"] and
          found["discount"]["train/loss"] > 1.2 * plain["train/loss"], "--discount", (plain, found["discount"]))
    check(found["nothing"]["train/loss"] == 0 and found["nothing"]["teacher_kl"] == plain["teacher_kl"] and
          '"kl-coefficient": 0.0' in (folder / "options-nothing" / "config.json").read_text(), "--kl-coefficient 0", found)
    check(found["ppo"]["teacher_kl"] == plain["teacher_kl"] != found["seed"]["teacher_kl"], "--loss and --seed", found)


def forms(folder, teacher):
    """Each form of a prompt has the same tokens. An answer at the end is not used."""
    user, answer = {"role": "user", "content": "1?"}, {"role": "assistant", "content": "never"}
    found = []
    for form in ({"prompt": "1?"}, {"prompt": "1?", "completion": "never"}, {"prompt": [user]}, {"messages": [user]},
                 {"messages": [user, answer]}, {"prompt": "1?", "chosen": "a", "rejected": "b"}):
        got = tnk("train", write(folder / "form.jsonl", [form]), *DISTILL, "--teacher", teacher, "--local", "--dry-run",
                  "--json")
        found.append(json.loads(got.stdout) if got.returncode == 0 else got)
    check(all(one == found[0] for one in found) and found[0]["tokens"] == 20, "forms of a prompt", found)
    turns = {"messages": [user, answer, {"role": "user", "content": "2?"}, answer]}
    got = tnk("train", write(folder / "form.jsonl", [turns]), *DISTILL, "--teacher", teacher, "--local", "--dry-run",
              "--json")
    check(got.returncode == 0 and json.loads(got.stdout)["tokens"] > 40, "a conversation of several turns", got)
    got = tnk("train", write(folder / "form.jsonl", [{"prompt": "1?"}, {"prompt": "x" * 99}]), *DISTILL, "--teacher",
              teacher, "--local", "--dry-run", "--json", "--max-length", 50, "--epochs", 3)
    shown = json.loads(got.stdout)
    check(shown["examples"] == 1 and shown["left_out"] == 1 and shown["steps"] == 3, "a long prompt is left out", got)
    # 20 tokens and 1,024 sampled ones, 4 times, in 3 steps: sampled, scored and trained.
    check(shown["max_sampled_tokens"] == 3 * 4 * 1024 and
          shown["max_tokens"] == 3 * 4 * ((20 + 1024) + (20 + 1024 + 1) + (20 + 1023)), "the most tokens", shown)


BAD_LINES = (({"text": "a"}, '"prompt" is missing'), ({"prompt": 1}, '"prompt" is neither'),
             ({"messages": []}, '"messages" has no message'), ([1], "not a JSON object"),
             ({"messages": [{"role": "assistant", "content": "a"}]}, '"messages" has no message before the answer'))
BAD_OPTIONS = ((("--method", "distill"), 2, "--method distill needs a --teacher"),
               ((*DISTILL, "--teacher", ""), 2, '--teacher: "" is empty'),
               (("--teacher", "x"), 2, "need --method distill"), (("--answer-tokens", 4), 2, "need --method distill"),
               (("--kl-coefficient", 0), 2, "need --method distill"),
               ((*DISTILL, "--teacher", "tnk/byte-lm"), 2, "--teacher is the model itself"),
               ((*DISTILL, "--teacher", "tinker://a:train:0/weights/b"), 2, "--teacher is the state of a training"),
               ((*DISTILL, "--teacher", "x", "--eval-split", 0.1), 2, "has no evaluation"),
               ((*DISTILL, "--teacher", "x", "--batch-tokens", 9), 2, "--batch-tokens"),
               ((*DISTILL, "--teacher", "x", "--each-answer"), 2, "--each-answer"),
               ((*DISTILL, "--teacher", "x", "--beta", 1), 2, "--beta needs"),
               ((*DISTILL, "--teacher", "none/such"), 4, "none/such"),
               ((*DISTILL, "--teacher", "tinker://a:train:0/sampler_weights/b"), 4, "not found"))


def bad(folder, data, teacher):
    for line, words in BAD_LINES:
        got = tnk("train", write(folder / "bad.jsonl", [{"prompt": "a"}, line]), *DISTILL, "--teacher", teacher, "--local",
                  "--run", folder / "bad")
        check(got.returncode == 1 and "bad.jsonl:2: " in got.stderr and words in got.stderr, f"a line: {words}", got)
    (folder / "bad.jsonl").write_text("\n")
    got = tnk("train", folder / "bad.jsonl", *DISTILL, "--teacher", teacher, "--local", "--run", folder / "bad")
    check(got.returncode == 6 and "there is no prompt" in got.stderr, "no prompts", got)
    check(not (folder / "bad").exists(), "and nothing was begun")
    for i, (args, status, words) in enumerate(BAD_OPTIONS):
        run = folder / f"bad-{i}"
        got = tnk("train", data, *args, "--local", "--run", run, "--steps", 1)
        check(got.returncode == status and words in got.stderr, f"refused: {words}", got)
        check(not (run / "metrics.jsonl").exists(), f"{words}: and nothing was trained", got)
    (folder / "empty").mkdir()
    got = tnk("train", data, *DISTILL, "--teacher", folder / "empty", "--local", "--run", folder / "bad-empty")
    check(got.returncode == 6 and "has no sampler weights" in got.stderr, "a folder without a run", got)


def other_vocabulary(folder, teacher):
    """A teacher that does not know the ids of the student's tokenizer."""
    rules = folder / "large"
    rules.mkdir()
    shutil.copy(pathlib.Path(sys.argv[2]) / "qwen2.json", rules / "tokenizer.json")
    (rules / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    data = write(folder / "ab.jsonl", [{"prompt": "ab"}])
    with Local("--data", teacher / "served") as server:
        got = server("train", data, *DISTILL, "--tokenizer", rules, "--model", "tnk/byte-lm", "--teacher", teacher, "--run",
                     folder / "vocabulary", "--steps", 1)
    check(got.returncode == 1 and f"--teacher {teacher} cannot score the tokens of tnk/byte-lm" in got.stderr and
          "same tokenizer" in got.stderr, "another vocabulary", got)


def other_ids(folder):
    """A teacher with as many token ids, which mean other texts. A few tokens prove nothing."""
    text = "the quick brown fox jumps over the lazy dog, and then again"
    rules = json.loads((pathlib.Path(sys.argv[2]) / "gpt2.json").read_text())
    words = rules["model"]["vocab"]
    for name, shift in (("own", 0), ("other", 500)):
        (folder / name).mkdir()
        rules["model"]["vocab"] = {word: (number + shift) % len(words) for word, number in words.items()}
        (folder / name / "tokenizer.json").write_text(json.dumps(rules))
        (folder / name / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    run = folder / "taught"
    got = tnk("train", write(folder / "text.jsonl", [{"prompt": text, "completion": " and again"}]), "--local", "--tokenizer",
              folder / "own", "--train-on", "everything", "--run", run, "--steps", 8, "--schedule", "constant")
    check(got.returncode == 0, "a teacher with a tokenizer", got)
    few = write(folder / "few-tokens.jsonl", [{"prompt": "the fox"}])
    for name, prompts, is_refused in (("own", folder / "text.jsonl", 0), ("other", folder / "text.jsonl", 1),
                                      ("own", few, 0), ("other", few, 0)):
        student = folder / f"student-{name}-{prompts.stem}"
        got = tnk("train", prompts, *DISTILL, "--teacher", run, "--local", "--tokenizer", folder / name, "--run", student,
                  "--steps", 1, "--answer-tokens", 2)
        words = f"--teacher {run} the tokens of a prompt are less likely than random ones"
        check(got.returncode == is_refused and (words in got.stderr) == is_refused and
              (student / "metrics.jsonl").exists() == (not is_refused), f"{name} tokenizer, {prompts.stem}", got)


def limited(folder, data, teacher):
    """A step that may exceed the limit is not begun; a higher limit continues the run."""
    prices = folder / "prices.json"
    prices.write_text(json.dumps({"prices": [{"model": "tnk/byte-lm", "prompt": 1, "sampled": 2, "trained": 3}]}))
    args = ("train", data, *DISTILL, "--teacher", teacher, "--local", *SHORT, "--prices", prices)
    # The most of a step: 8 answers of 3 tokens to 20, sampled, scored and trained.
    most = 8 * (23 + 24 + 22)
    # The prompts of a group count once when they are used, so a third step may be possible.
    for more in (("--max-usd", 8 * (20 + 3 * 2 + 24 * 2 + 22 * 3) * 2 / 1e6), ("--max-tokens", 2 * most)):
        run = folder / f"limited{more[0]}"
        got = tnk(*args, "--run", run, *more)
        done = len(lines(run))
        check(got.returncode == 1 and "would exceed the limit" in got.stderr and 2 <= done < STEPS, f"{more}", (got, done))
    got = tnk(*args, "--run", run, "--max-tokens", 20 * most, "--json")
    check(got.returncode == 0 and metrics(run) == metrics(folder / "plain") and
          weights(run, run / "served") == weights(folder / "plain", folder / "plain" / "served"),
          "a higher limit continues it", got)
    prices.write_text(json.dumps({"prices": [{"model": "another", "prompt": 1, "sampled": 2, "trained": 3}]}))
    got = tnk(*args, "--run", folder / "unpriced", "--max-usd", 1)
    check(got.returncode == 6 and "has no price for tnk/byte-lm" in got.stderr, "a model without a price", got)


def interrupted(folder, data, teacher, plain):
    """Ctrl-C ends it between two answers; the same command continues."""
    run = folder / "interrupted"
    args = [TNK, "train", data, *DISTILL, "--teacher", teacher, "--local", "--run", run, *map(str, SHORT)]
    process, said = ended_in_the_middle(args, run, 1, signal.SIGINT)
    check(process.returncode == 130 and "The same command continues it" in said, "Ctrl-C", said)
    # The copy of the teacher's weights is enough.
    got = subprocess.run(args, env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    check(got.returncode == 0 and metrics(run) == metrics(plain) and
          weights(run, run / "served") == weights(plain, plain / "served"), "with the same result", got)
    got = tnk(*args[1:], "--kl-coefficient", 2)
    check(got.returncode == 6 and "--kl-coefficient is 1.0 there and 2.0 here" in got.stderr, "another run", got)
    got = tnk("train", "--config", plain / "config.json", "--run", folder / "configured", "--steps", 1)
    check(got.returncode == 0 and lines(folder / "configured")[0]["teacher_kl"] == lines(plain)[0]["teacher_kl"],
          "a configuration of a run", got)


def used(run):
    """The steps and the tokens of the last save of a run."""
    saves = [json.loads(line) for line in (run / "checkpoints.jsonl").read_text().splitlines()]
    last = ([{"batch": 0}] + [line for line in saves if line.get("tnk") == "saved"])[-1]
    return last["batch"], sum(last.get(f"tnk_{kind}_tokens", 0) for kind in ("prompt", "sampled", "trained", "doubtful"))


def sampler_lost(folder, data, teacher):
    """Steps before the loss of a sampler are not saved, and a limit then ends the run."""
    args = ("train", data, *DISTILL, "--teacher", teacher_path(teacher), "--model", "tnk/byte-lm", *SHORT, "--save-every", 99)
    with Local("--data", copied(folder, teacher)) as server:
        server(*args, "--run", folder / "two", "--steps", 2)
    # A third step is possible, but not once more: one score of the prompt, and in a step 4 samples with 8 scores.
    most = used(folder / "two")[1] + 8 * (23 + 24 + 22)
    # The teacher and the student of each step have a sampler. The next one would replace the lost one.
    faults = f"404/asample@{1 + 2 * 12 + 4 + 3},404/create_sampling_session@{1 + 3 + 1}"
    with Local("--data", copied(folder, teacher), "--faults", faults) as server:
        got = server(*args, "--run", folder / "lost", "--max-tokens", most)
    check(got.returncode == 1 and "restored after step 2" in got.stderr and "would exceed the limit" in got.stderr,
          "a lost sampler and a limit", got)
    check(len(lines(folder / "lost")) == 2 and used(folder / "lost")[0] == 2, "the steps before are saved", got)


def teacher_priced(folder, data, teacher):
    """The teacher has the price of its own base model, which the service names."""
    prices = folder / "two-prices.json"
    rows = [{"model": model, "prompt": n, "sampled": n, "trained": n} for model, n in (("tnk/byte-lm", 1), ("a/b", 100))]
    args = ("train", data, *DISTILL, "--teacher", teacher_path(teacher), "--model", "tnk/byte-lm", *SHORT, "--prices", prices,
            "--max-usd", 0.01)
    with Local("--data", copied(folder, teacher), "--model", "a/b") as server:
        for n, status, words in ((2, 1, "the next step would exceed the limit"), (1, 6, "has no price for a/b")):
            prices.write_text(json.dumps({"prices": rows[:n]}))
            got = server(*args, "--run", folder / f"priced-{n}")
            check(got.returncode == status and words in got.stderr and not (folder / f"priced-{n}/metrics.jsonl").exists(),
                  f"a teacher of another model: {words}", got)
    for name, is_assumed in ((teacher, 1), (teacher_path(teacher), 1), ("a/b", 0)):
        got = tnk("train", data, *DISTILL, "--teacher", name, "--local", "--dry-run", "--prices", prices)
        check(got.returncode == 0 and is_assumed == ("is assumed to be that of tnk/byte-lm" in got.stderr),
              f"--dry-run says what it assumes of {name}", got)


def refused_within(folder, data, teacher):
    """A limit that refuses a request within a step: the model before the step is saved."""
    prices = folder / "names.json"
    # The service's name of the samples is more expensive than the name that the run begins with.
    prices.write_text(json.dumps({"prices": [{"model": model, "prompt": n, "sampled": n, "trained": n}
                                             for model, n in (("tnk/byte-lm", 0.001), ("a/b", 1))]}))
    args = ("train", data, *DISTILL, "--teacher", teacher_path(teacher), "--model", "tnk/byte-lm", *SHORT, "--save-every", 99,
            "--prices", prices)
    with Local("--data", copied(folder, teacher), "--model", "a/b") as server:
        server(*args, "--run", folder / "one", "--steps", 1)
        one = used(folder / "one")[1]
        for share, n_done in ((0.04, 0), (0.2, 0), (1, 1)):
            run = folder / f"within-{share}"
            got = server(*args, "--run", run, "--max-usd", (one * share + 8 * 24 * (share > 0.1) + 20 * (share == 1)) / 1e6)
            check(got.returncode == 1 and "has refused a request" in got.stderr and
                  "budget of the program" in got.stderr and "ignored" not in got.stderr and
                  ("Its state is saved" if share > 0.1 else "no saved state") in got.stderr, f"refused within a step, {share}", got)
            check((run / "metrics.jsonl").exists() == (n_done > 0) and used(run)[0] == n_done and
                  (used(run)[1] > one * n_done) == (share > 0.1), f"its model and its use are saved, {share}", used(run))


def without_answers(server, n):
    """Answers a request as the server does, but the samples after the first `n` are empty."""
    left = [n]

    def change(_, answer):
        if "sequences" in answer and not answer.get("prompt_logprobs"):
            left[0] -= 1
            for sequence in answer["sequences"] if left[0] < 0 else ():
                sequence.update(tokens=[], logprobs=[])

    return forward(server, change)


def empty_answers(folder, data, teacher, plain):
    """A step whose answers are all empty ends the run. The steps before it are saved."""
    run = folder / "answerless"
    args = ("train", data, *DISTILL, "--teacher", teacher_path(teacher), "--model", "tnk/byte-lm", *SHORT, "--run", run)
    served = copied(folder, teacher)
    for n, done in ((0, 0), (4, 1)):
        with Local("--data", served) as server, scripted(without_answers(server, n)) as (url, _):
            got = tnk(*args, "--save-every", 99, env={"TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"})
        check(got.returncode == 1 and f"step {done + 1}: all answers are empty" in got.stderr and used(run)[0] == done,
              f"empty answers after {done} steps", (got, used(run)))
    with Local("--data", served) as server:
        got = server(*args, "--teacher", teacher_path(teacher))
    check(got.returncode == 0 and "resuming after step 1\n" in got.stderr and len(lines(run)) == STEPS and
          [row["teacher_kl"] for row in lines(run)] == [row["teacher_kl"] for row in lines(plain)],
          "with answers it continues", got)


def nothing_saved(folder, data, teacher):
    """Ctrl-C before the first step is complete."""
    args = [TNK, "train", data, *DISTILL, "--teacher", teacher_path(teacher), "--model", "tnk/byte-lm", *map(str, SHORT),
            "--run", folder / "nothing"]
    with Local("--verbose", "--data", copied(folder, teacher), "--faults", "503/asample@2-") as server:
        with subprocess.Popen(args, env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            for _ in range(3):
                while "asample" not in server.process.stderr.readline():
                    pass
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
    check(process.returncode == 130 and "no saved state" in said and "is saved" not in said and "ignored" not in said, "Ctrl-C before a save", said)


def teacher_path(teacher):
    return next(json.loads(line)["sampler_path"] for line in (teacher / "checkpoints.jsonl").read_text().splitlines()
                if "sampler_path" in line)


def copied(folder, teacher):
    """A copy of the checkpoints of the teacher, for a server."""
    copied.n = getattr(copied, "n", 0) + 1
    return shutil.copytree(teacher / "served", folder / f"served-{copied.n}")


def teacher_gone(folder, data, teacher):
    """A server that comes back without the weights of the teacher."""
    path = teacher_path(teacher)
    pair = Pair(folder / "gone", [data, *DISTILL, "--teacher", path, *SHORT, "--steps", 9999, "--save-every", 1])
    served = pathlib.Path(f"{pair.run}-served")
    shutil.copytree(teacher / "served", served)
    client = pair.train(pair.serve())
    while not client.stderr.readline().startswith("step 1/"):
        pass
    pair.server.kill()
    pair.server.wait()
    shutil.rmtree(served.joinpath(*path.removeprefix("tinker://").replace(":", "_").split("/")))
    pair.serve()
    try:
        _, said = client.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        client.kill()
        said = "it does not end"
    pair.server.stdin.close()
    pair.server.wait(60)
    check(client.returncode == 4 and "not found" in said and "--teacher is the name of" in said, "a teacher that is gone",
          said)


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    master = teach(top)
    asked = write(top / "asked.jsonl", [{"prompt": f"{i}?"} for i in range(8)])
    everything = [asked, *DISTILL, "--teacher", master, *SHORT]
    undisturbed = top / "plain"
    first = tnk("train", *everything, "--local", "--run", undisturbed)
    check(first.returncode == 0 and len(lines(undisturbed)) == STEPS, "each step once", first)
    bad(top, asked, master)
    forms(top, master)
    options(top, asked, master)
    certain(top, asked, master)
    other_vocabulary(top, master)
    other_ids(top)
    learns(top, master)
    limited(top, asked, master)
    interrupted(top, asked, master, undisturbed)
    sampler_lost(top, asked, master)
    refused_within(top, asked, master)
    nothing_saved(top, asked, master)
    empty_answers(top, asked, master, undisturbed)
    teacher_priced(top, asked, master)
    teacher_gone(top, asked, master)
    killed_local(top, everything, undisturbed, "distill", "train", STEPS)
    killed_apart(top, everything, undisturbed, "distill",
                 before=lambda served: shutil.copytree(master / "served", served, dirs_exist_ok=True))
plan()
