#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk rl: an agent learns from its rewards, runs resume after kills, bad environments are bounded.

usage: run_rl.py TNK_COMMAND

KILLS=20 makes so many for each row of the matrix. Output is TAP, see
test/support/tap.py.
"""
import contextlib
import json
import math
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

from console import CLEAN, TNK, Local, check, plan, tnk
from train_runs import (ended_in_the_middle, killed_apart, killed_at_the_end, killed_local, lost_result, metrics,
                        weights)

PLAYER = pathlib.Path(__file__).with_name("rl_environment.py")
KEY = re.compile(r"tnk-[0-9a-f]{8}")
STEPS = 4
RUN = ("--steps", STEPS, "--groups", 2, "--group-size", 4, "--learning-rate", "0.02", "--save-every", 2)
# One step with few environments.
SHORT = ("--steps", 1, "--groups", 1, "--group-size", 4, "--learning-rate", "0.02")


def play(*args):
    """The command of an environment."""
    return ("--environment", shlex.join([sys.executable, "-I", "-S", str(PLAYER), *args]))


def lines(run):
    return [json.loads(line) for line in metrics(run).splitlines()]


def learns(folder):
    """From the rewards on the standard output, and from those that are posted."""
    for how, more in (((), ()), (("post",), ("--loss", "ppo"))):
        run = folder / f"learns{len(more)}"
        args = ["rl", *play(*how), "--local", "--run", run, "--steps", 5, "--groups", 1, "--group-size", 12,
                "--learning-rate", "0.03", "--advantages", "normalized", "--parallel", 8, *more]
        # A build with sanitizers needs minutes on a busy machine.
        got = subprocess.run([TNK, *map(str, args)], env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=900)
        rewards = [line["reward"] for line in lines(run)] if got.returncode == 0 else []
        check(got.returncode == 0 and rewards[0] < 0.1 and rewards[-1] > 0.9, f"the reward rises {more}", (got, rewards))
        check(all(line["failed"] == 0 for line in lines(run)), "no environment fails", lines(run))
    check(all(abs(line["kl"]) < 1e-4 for line in lines(run)), "the samples of a step are of its weights", lines(run))
    found = [line for line in got.stdout.splitlines() if line.startswith("weights   tinker://")]
    check(len(found) == 1 and "trained 5 steps, reward " in got.stdout, "it says what it made", got)
    with Local("--data", run / "served") as server:
        got = server("sample", "--checkpoint", found[0].split()[1], "--max-tokens", 8, "User: Say:\n\nAssistant:")
        left = [path.name for path in (run / "served").glob("*/sampler_weights/*")]
    check(got.returncode == 0 and sum(c in "aeiouAEIOU" for c in got.stdout) >= 6, "its weights say vowels", got)
    check(left == ["save-1"], "no other sampler weights stay", left)


def rewards(folder):
    """A reward may be printed or posted. An episode counts once, however many examples it has."""
    found = {}
    for how in ("", "post", "posts", "branches"):
        got = tnk("rl", *play(*[how] if how else []), "--local", "--run", folder / f"rewards-{how}", *SHORT)
        check(got.returncode == 0, f"rewards {how}", got)
        found[how] = lines(folder / f"rewards-{how}")[0]
    for how in ("post", "posts"):
        check(all(math.isclose(found[how][key], found[""][key], rel_tol=1e-5, abs_tol=1e-7) for key in found[""]),
              f"{how}: as if printed", found)
    check(found["branches"]["reward"] == 2.5 and found["branches"]["tokens"] > found[""]["tokens"] and
          found["branches"]["failed"] == 0, "an episode with two examples", found["branches"])


def bad(folder):
    """Each kind of failure is counted under its name, the others are trained on, and no key is shown."""
    for how, name, words in (
            ("crash", "crashed", "exited with status 1: first second third, and the key is ****"),
            (None, "crashed", "was ended by signal 9"),
            # Long enough for the others on a busy machine.
            ("hang", "timed_out", "did not end within 20 s"),
            ("silent", "silent", "ended without a sample of the model"),
            ("untold", "unrewarded", "posted no reward and printed none"),
            ("text", "unrewarded", "its last line is no number: nothing like ****"),
            ("infinite", "unrewarded", "its last line is no number: 1e999"),
            ("long", "unrewarded", "its last line is no number: 1111")):
        run = folder / f"bad-{how}"
        command = play(how, "03") if how else ("--environment", "case $TNK_RL_MEMBER in [03]) kill -9 $$;; esac; " +
                                               play()[1])
        got = tnk("rl", *command, "--local", "--run", run, *SHORT, "--max-failed", 2,
                  *(("--environment-timeout", 20) if how == "hang" else ()))
        check(got.returncode == 0 and f"2 of 4 environments have failed (2 {words_of(name)}). The last one "
              in got.stderr and words in got.stderr, f"{how}: reported", got)
        line = lines(run)[0] if got.returncode == 0 else {}
        check(line.get("failed") == 2 and line[f"failed/{name}"] == 2, f"{how}: counted", line)
        check(not KEY.search(got.stdout + got.stderr), f"{how}: no key is shown", got)
    got = tnk("rl", *play("loud"), "--local", "--run", folder / "loud", *SHORT)
    check(got.returncode == 0 and lines(folder / "loud")[0]["failed"] == 0, "a megabyte is no failure", got)


def too_many(folder):
    """More failures than --max-failed end the run, with what the last one has said."""
    for how, words in (("crash", "status 1: first second third, and the key is ****"), ("hang", "within 1 s"),
                       ("deaf", "within 1 s"), ("silent", "without a sample"), ("untold", "printed none"),
                       ("/none/environment", "not found")):
        command = play(how, "01") if "/" not in how else ("--environment", how)
        run = folder / f"over-{pathlib.Path(how).name}"
        got = tnk("rl", *command, "--local", "--run", run, *SHORT, "--group-size", 2, "--parallel", 1, "--max-failed", 0,
                  *(("--environment-timeout", 1) if "1 s" in words else ()))
        check(got.returncode == 1 and "step 1: 1 of 2 environments have failed" in got.stderr and
              "--max-failed is 0" in got.stderr and words in got.stderr, f"{how}: ends the run", got)
        check(not (run / "metrics.jsonl").exists() and not KEY.search(got.stderr), f"{how}: and nothing else", got)


def not_started(folder):
    """A command that the system refuses to start, because it is too long."""
    (folder / "long.json").write_text(json.dumps({"environment": "exit 0 #" + "x" * (1 << 18)}))
    got = tnk("rl", "--config", folder / "long.json", "--local", "--run", folder / "not-started", *SHORT)
    check(got.returncode == 1 and " did not start)" in got.stderr and "cannot be started: argument list too long"
          in got.stderr, "a command that cannot be started", got)


def words_of(name):
    return {"crashed": "crashed", "timed_out": "timed out", "silent": "sampled nothing",
            "unrewarded": "told no reward"}[name]


def surroundings(folder):
    """The variables that an environment gets, and those that it does not get."""
    said = folder / "said"
    said.mkdir()
    names = "OPENAI_BASE_URL OPENAI_API_KEY ANTHROPIC_BASE_URL ANTHROPIC_API_KEY TNK_GATEWAY_URL TNK_RL_SEED"
    write = (f'env >"{said}/$TNK_RL_STEP-$TNK_RL_GROUP-$TNK_RL_MEMBER" && ' + play()[1])
    got = tnk("rl", "--environment", write, "--local", "--run", folder / "surroundings", "--steps", 2, "--groups", 2,
              "--group-size", 2, "--learning-rate", "0.02", "--verbose",
              env={"TINKER_API_KEY": "tml-canary", "MLFLOW_TRACKING_TOKEN": "tml-canary", "MLFLOW_TRACKING_PASSWORD": "tml-canary",
                   "OPENAI_API_KEY": "sk-mine", "PASSED": "on", "NO_PROXY": "a,b"})
    check(got.returncode == 0, "it trains", got)
    told = {path.name: dict(line.partition("=")[::2] for line in path.read_text().splitlines())
            for path in said.iterdir()}
    check(sorted(told) == [f"{s}-{g}-{m}" for s in (1, 2) for g in (0, 1) for m in (0, 1)], "each once", sorted(told))
    for name, env in told.items():
        step, group, _ = map(int, name.split("-"))
        check(all(env.get(key) for key in names.split()) and not {"TINKER_API_KEY", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD"} & {*env} and
              env["PASSED"] == "on" and env["TNK_RL_TASK"] == str((step - 1) * 2 + group) and
              env["ANTHROPIC_API_KEY"] == env["OPENAI_API_KEY"] and
              env["no_proxy"] == env["NO_PROXY"] == "a,b,127.0.0.1" and
              env["OPENAI_BASE_URL"] == env["ANTHROPIC_BASE_URL"] + "/v1" == env["TNK_GATEWAY_URL"] + "/v1",
              f"the variables of {name}", sorted(env))
    for key in ("OPENAI_API_KEY", "TNK_RL_SEED"):
        check(len({env[key] for env in told.values()}) == 8, f"{key} is of one environment", told.keys())
    shown = got.stdout + got.stderr + "".join(path.read_text(errors="replace") for path in (
        folder / "surroundings").glob("*.json*"))
    check("forward_backward" in got.stderr and ": request of " in got.stderr and ": status 200, " in got.stderr,
          "--verbose shows requests", got)
    check("step1-0-0-try1: reward " in got.stderr and not any(env["OPENAI_API_KEY"] in shown for env in told.values()),
          "keys reach no log and no file")


def left_behind(folder):
    """Processes that an environment leaves running are ended with it, without a failure."""
    pids = folder / "left"
    pids.mkdir()
    command = f'sleep 600 & echo $! >"{pids}/$TNK_RL_MEMBER"; ' + play()[1]
    got = tnk("rl", "--environment", command, "--local", "--run", folder / "behind", *SHORT)
    check(got.returncode == 0 and lines(folder / "behind")[0]["failed"] == 0, "it is no failure", got)
    check(len([*pids.iterdir()]) == 4 and not alive(pids), "it is ended", alive(pids))


def alive(pids):
    """The processes that have written their numbers, and have not ended. Zombies have."""
    found = []
    for path in pids.iterdir():
        try:
            state = pathlib.Path("/proc", path.read_text().strip(), "stat").read_text().rpartition(")")[2].split()[0]
            found += [path.name] if state != "Z" else []
        except FileNotFoundError:
            pass
    return found


def used(run):
    """The tokens that the ledger of a run counts."""
    saves = [json.loads(line) for line in (run / "checkpoints.jsonl").read_text().splitlines()]
    last = [line for line in saves if line.get("tnk") == "saved"][-1]
    return sum(last.get(f"tnk_{kind}_tokens", 0) for kind in ("prompt", "sampled", "trained", "doubtful"))


def limits(folder, plain):
    """A limit ends the run with the state of the last complete step, and is never exceeded."""
    total = used(plain)
    prices = folder / "prices.json"
    prices.write_text(json.dumps({"prices": [{"model": "tnk/byte-lm", "prompt": 2, "sampled": 2, "trained": 2}]}))
    # While the first step samples, when it trains, and between two steps.
    for share, steps, kind in ((0.03, (0,), "--max-tokens"), (0.2, (0,), "--max-tokens"), (0.6, (1, 2), "--max-usd")):
        limit = int(total * share)
        more = (kind, limit) if kind == "--max-tokens" else (kind, 2 * limit / 1e6, "--prices", prices)
        run = folder / f"limited-{share}"
        # Again with the same limit: earlier processes count.
        for _ in range(2 if share == 0.03 else 1):
            got = tnk("rl", *play(), "--local", "--run", run, *RUN, *more)
            words = ("would exceed the limit", "has refused a request")
            check(got.returncode == 1 and any(word in got.stderr for word in words[share < 0.5:]) and
                  "--max-tokens" in got.stderr, f"{more}: ends", got)
            check(("A request reserves" in got.stderr and "lower --parallel, continues it" in got.stderr) ==
                  (words[1] in got.stderr), f"{more}: a hint", got)
            done = len(lines(run)) if (run / "metrics.jsonl").exists() else 0
            check(done in steps and 0 < used(run) <= limit, f"{more}: after complete steps", (done, used(run), limit))
    got = tnk("rl", *play(), "--local", "--run", run, *RUN, "--max-tokens", total * 3)
    check(got.returncode == 0 and metrics(run) == metrics(plain) and
          weights(run, run / "served") == weights(plain, plain / "served"), "a higher limit continues", got)
    prices.write_text('{"prices": [{"model": "another", "prompt": 1, "sampled": 1, "trained": 1}]}')
    for more, status, words in ((("--max-usd", 1), 2, "--max-usd needs --prices"),
                                (("--max-usd", 1, "--prices", prices), 6, "has no price for tnk/byte-lm"),
                                (("--max-usd", 0, "--prices", prices), 2, "--max-usd must be above 0"),
                                (("--max-tokens", 0), 2, "--max-tokens")):
        got = tnk("rl", *play(), "--local", "--run", folder / "unlimited", *RUN, *more)
        check(got.returncode == status and words in got.stderr, f"refused: {words}", got)
    prices.write_text('{"prices": [{"model": "tnk/byte-lm", "prompt": 1, "sampled": 1, "trained": 1}]}')
    with Local("--model", "a/b") as server:
        got = server("rl", *play(), "--model", "tnk/byte-lm", "--run", folder / "named", *RUN, "--max-usd", 1, "--prices", prices)
    check(got.returncode == 6 and "has no price for a/b" in got.stderr, "the service names its model otherwise", got)


def evaluated(folder, plain):
    """A second environment is run with the new weights. It does not change the training, and its tasks stay."""
    run, said = folder / "evaluated", folder / "evaluations"
    said.mkdir()
    second = f'env >"{said}/$TNK_RL_STEP-$TNK_RL_TASK" && ' + play()[1]
    args = [*play(), *RUN, "--evaluate", second, "--every", 3, "--evaluate-tasks", 2]
    got = tnk("rl", *args, "--local", "--run", run, "--json")
    rows = lines(run)
    check(got.returncode == 0 and [row["step"] for row in rows if "eval/reward" in row] == [3, STEPS],
          "after each third step and the last one", (got, rows))
    check([{k: v for k, v in row.items() if not k.startswith("eval/")} for row in rows] == lines(plain) and
          weights(run, run / "served") == weights(plain, plain / "served"), "the training is the same", rows)
    check(json.loads(got.stdout)["eval_reward"] == rows[-1]["eval/reward"] and '"eval_reward":' in got.stderr,
          "its result and its progress", got)
    told = {path.name: dict(line.partition("=")[::2] for line in path.read_text().splitlines())
            for path in said.iterdir()}
    check(sorted(told) == [f"{step}-{task}" for step in (3, STEPS) for task in (0, 1)] and
          all(told[f"3-{task}"]["TNK_RL_SEED"] == told[f"{STEPS}-{task}"]["TNK_RL_SEED"] for task in (0, 1)),
          "all evaluations have the same tasks and seeds", sorted(told))
    found = []
    for rate in ("0.02", "0.000000001"):
        got = tnk("rl", *play(), "--local", "--run", folder / f"rate{rate}", *SHORT, "--learning-rate", rate, "--evaluate",
                  play()[1])
        found.append(lines(folder / f"rate{rate}")[-1] if got.returncode == 0 else got)
    check(found[0]["reward"] == found[1]["reward"] and found[0]["eval/reward"] != found[1]["eval/reward"],
          "the weights are the new ones, and the last step is evaluated", found)
    again = folder / "again"
    got = tnk("rl", *play(), "--local", "--run", again, *SHORT, "--evaluate", "exit 3", "--max-failed", 1,
              "--evaluate-tasks", 8)
    check(got.returncode == 1 and
          re.search(r"evaluation after step 1: . of 8 environments have failed \(. crashed\), and at most 2 may fail, "
                    "in proportion to --max-failed. The last", got.stderr) and "--max-failed is" not in got.stderr,
          "failures are named", got)
    check(len(lines(again)) == 1 and "eval/reward" not in lines(again)[0] and used(again) > 0 and
          "step 1 has no evaluation: it failed" in got.stderr, "and the step is kept", (got, lines(again)))
    waits = f'echo >"{folder}/waits"; while :; do sleep 0.1; done'
    with subprocess.Popen([TNK, "rl", *play(), "--local", "--run", folder / "halted", *map(str, SHORT), "--evaluate", waits],
                          env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        while process.poll() is None and not (folder / "waits").exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        process.send_signal(signal.SIGINT)
        _, left_out = process.communicate(timeout=120)
    check(process.returncode == 130 and "step 1 has no evaluation: it was stopped" in left_out and used(folder / "halted") > 0,
          "Ctrl-C in an evaluation", left_out)
    for more, words in ((("--every", 2), "--every and --evaluate-tasks need --evaluate"),
                        (("--evaluate-tasks", 2), "--every and --evaluate-tasks need --evaluate")):
        got = tnk("rl", *play(), "--local", "--run", folder / "never", *RUN, *more)
        check(got.returncode == 2 and words in got.stderr, f"refused: {words}", got)
    return args, run


def interrupted(folder, plain):
    """Ctrl-C stops the environments and saves; the same command continues."""
    run = folder / "interrupted"
    args = [TNK, "rl", *play(), "--local", "--run", run, *map(str, RUN)]
    process, said = ended_in_the_middle(args, run, 1, signal.SIGINT)
    check(process.returncode == 130 and "The same command continues it" in said, "Ctrl-C", said)
    got = subprocess.run(args, env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    check(got.returncode == 0 and "resuming after step " in got.stderr, "it continues", got)
    check(metrics(run) == metrics(plain) and
          weights(run, run / "served") == weights(plain, plain / "served"), "with the same result")
    again = tnk("rl", *play(), "--local", "--run", run, *RUN, "--json")
    check(again.returncode == 0 and json.loads(again.stdout)["steps"] == STEPS, "the result is shown again", again)


def stopped(folder):
    """No process outlives a run that was stopped, not even one that is deaf to SIGTERM."""
    pids = folder / "pids"
    pids.mkdir()
    hang = f'echo $$ >"{pids}/$TNK_RL_MEMBER"; trap "" TERM; while :; do sleep 0.1; done'
    with subprocess.Popen([TNK, "rl", "--environment", hang, "--local", "--run", folder / "stopped", *map(str, SHORT)],
                          env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        while len([path for path in pids.iterdir() if path.read_text().endswith("\n")]) < 4:
            if process.poll() is not None:
                break
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    check(process.returncode == 143 and "the run is not finished" in said, "SIGTERM", said)
    check(not alive(pids), "all environments have ended", alive(pids))


def refused(folder, plain):
    """Bad options, and the folder of another run."""
    base = (*play(), "--local", "--run", folder / "refused", "--steps", 1)
    for args, words in ((("--enviroment", "x"), 'did you mean "--environment"?'),
                        (base[2:], "--environment is the command"),
                        ((*base[:3], *base[5:]), "--run names the folder"),
                        (base[:5], "--steps is missing"),
                        ((*base[:2], *base[3:]), "--model says what to train"),
                        ((*base, "--base-url", "http://x"), "either --local or --base-url"),
                        ((*base, "--group-size", 1), "rewards are compared within a group"),
                        ((*base, "--groups", 65536), "is at most 65536"),
                        ((*base, "--max-failed", 64), "--max-failed must be less"),
                        ((*base, "--loss", "importance-sampling"), "importance_sampling, ppo, cispo, gspo or dro"),
                        ((*base, "--renderer", "none"), "unknown renderer")):
        got = tnk("rl", *args)
        check(got.returncode == 2 and words in got.stderr, f"refused: {words}", got)
    check(not (folder / "refused").exists(), "and nothing was begun")
    for more, words in ((("--seed", 1), "--seed is 0 there and 1 here"),
                        (("--loss", "ppo"), '--loss is "importance_sampling" there and "ppo" here'),
                        (("--steps", 9), f"--steps is {STEPS} there and 9 here")):
        got = tnk("rl", *play(), "--local", "--run", plain, *RUN, *more)
        check(got.returncode == 6 and words in got.stderr, f"another run: {words}", got)
    got = tnk("rl", *play("post"), "--local", "--run", plain, *RUN)
    check(got.returncode == 6 and "--environment is " in got.stderr, "another environment", got)
    (folder / "chats.jsonl").write_text('{"prompt": "a", "completion": "b"}\n')
    got = tnk("train", folder / "chats.jsonl", "--local", "--run", plain)
    check(got.returncode == 6 and "not a configuration of tnk train" in got.stderr, "a run of another command", got)
    got = tnk("rl", "--config", plain / "config.json", "--run", folder / "configured", "--steps", 1)
    check(got.returncode == 0 and lines(folder / "configured") == lines(plain)[:1], "a configuration of a run", got)


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    undisturbed = top / "plain"
    first = tnk("rl", *play(), "--local", "--run", undisturbed, *RUN)
    check(first.returncode == 0 and [line["step"] for line in lines(undisturbed)] == [*range(1, STEPS + 1)],
          "each step once", first)
    refused(top, undisturbed)
    surroundings(top)
    rewards(top)
    left_behind(top)
    bad(top)
    too_many(top)
    not_started(top)
    limits(top, undisturbed)
    with_evaluation, evaluation = evaluated(top, undisturbed)
    interrupted(top, undisturbed)
    stopped(top)
    learns(top)
    killed_local(top, with_evaluation, evaluation, "rl", "rl", STEPS)
    killed_apart(top, [*play(), *RUN], undisturbed, "rl", "rl")
    killed_at_the_end(top, [*play(), *RUN], undisturbed, "rl", "rl")
    lost_result(top, [*play(), *RUN], undisturbed, 1, "rl", "rl")
plan()
