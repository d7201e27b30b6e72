#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk rl --max-off-policy: environments run while a step trains, and samples that are too old are left out.

usage: run_rl_overlap.py TNK_COMMAND

KILLS=20 makes so many for each row of the matrix. Output is TAP, see
test/support/tap.py.
"""
import contextlib
import json
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from console import CLEAN, TNK, check, plan, tnk
from train_runs import KILLS, Pair, metrics, weights

PLAYER = pathlib.Path(__file__).with_name("rl_environment.py")
STEPS = 4
RUN = ("--groups", 2, "--group-size", 4, "--learning-rate", "0.02", "--save-every", 2, "--max-off-policy", 1)
# It samples once, says so, and ends when it may.
GATED = """
import os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import rl_environment
gate, task, member = sys.argv[2], os.environ["TNK_RL_TASK"], os.environ["TNK_RL_MEMBER"]
reward, _ = rl_environment.play(1)
n = 1
while True:
    try:
        os.close(os.open(f"{gate}/at-{task}-{member}-{n}", os.O_CREAT | os.O_EXCL))
        break
    except FileExistsError:
        n += 1
import time
while not any(os.path.exists(f"{gate}/{name}") for name in ("go", f"go-{task}", f"go-{task}-{member}")):
    time.sleep(0.005)
print(reward + int(member))
"""


def lines(run):
    path = run / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def play(*args):
    return ("--environment", shlex.join([sys.executable, "-I", "-S", str(PLAYER), *args]))


def commands_with(text):
    """The command lines of processes that have it. A bare system has no pgrep."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace").replace("\0", " "))
    return [line for line in found if text in line]


def once_each(run):
    return [line["step"] for line in lines(run)]


class Gate:
    """A run whose environments end when the test lets them."""

    def __init__(self, folder, *args):
        self.run, self.gate = folder, pathlib.Path(f"{folder}-gate")
        self.gate.mkdir()
        script = folder.parent / "gated.py"
        script.write_text(GATED)
        command = shlex.join([sys.executable, "-I", str(script), str(PLAYER), str(self.gate)])
        self.args = [TNK, "rl", "--environment", command, "--local", "--run", str(folder),
                     "--learning-rate", "0.02", *map(str, args)]

    def start(self):
        self.process = subprocess.Popen(self.args, env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        return self

    def until(self, what, condition):
        """Wait for a condition, unless the process ends."""
        end = time.monotonic() + 100
        while not condition() and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        if not condition():
            self.process.kill()
            check(False, f"{self.run.name}: {what}", (self.process.communicate(), [*self.gate.iterdir()], lines(self.run)))

    def sampled(self, task, attempt=1, n=2):
        self.until(f"task {task} has sampled", lambda: all((self.gate / f"at-{task}-{k}-{attempt}").exists()
                                                            for k in range(n)))

    def let(self, *names):
        for name in names:
            (self.gate / "-".join(["go", *map(str, name)])).touch()

    def steps(self, n):
        self.until(f"{n} steps", lambda: len(lines(self.run)) >= n)

    def end(self):
        try:
            out = self.process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGTERM)
            out = self.process.communicate()
        return subprocess.CompletedProcess(self.args, self.process.returncode, *out)


def late(folder):
    """A group whose environments end `lag` steps after they have sampled is trained, or left out and run again."""
    for most in (1, 2):
        for lag in range(most + 2):
            gate = Gate(folder / f"late{most}-{lag}", "--groups", 1, "--group-size", 2, "--steps", lag + 2,
                        "--max-off-policy", most).start()
            gate.sampled(0)
            gate.let((0, 0))  # one member ends at once
            for step in range(1, lag + 1):
                gate.sampled(step)
                gate.let((step,))
                gate.steps(step)
            gate.let((0,))
            if lag > most:
                gate.sampled(0, 2)
            else:
                gate.steps(lag + 1)
            gate.let(())
            got = gate.end()
            rows = lines(gate.run)
            check(got.returncode == 0 and once_each(gate.run) == [*range(1, lag + 3)],
                  f"at most {most}, {lag} steps late: all steps", (got, rows))
            check([row["stale_groups"] for row in rows] == [float(lag > most and k == lag) for k in range(lag + 2)],
                  f"at most {most}, {lag} steps late: left out", rows)
            check(all(row["staleness/max"] <= most and row["staleness/mean"] <= row["staleness/max"] for row in rows) and
                  (lag > most or rows[lag]["staleness/max"] == lag), f"at most {most}, {lag} steps late: the age", rows)
            check((gate.gate / "at-0-0-2").exists() == (lag > most), f"at most {most}, {lag} steps late: run again",
                  [*gate.gate.iterdir()])
            check(lag <= most or "groups left out 1" in got.stderr, "it is shown", got.stderr)


def before_the_switch(folder):
    """Groups that are complete before the weights change are a step old after it. The first one comes first."""
    gate = Gate(folder / "before", "--groups", 1, "--group-size", 2, "--steps", 2, "--max-off-policy", 1)
    gate.args[3] = f'mkdir -p "{gate.gate}/began-$TNK_RL_TASK"; ' + gate.args[3]
    gate.start()
    gate.sampled(0)
    gate.sampled(1)
    gate.let((1, 0), (1, 1), (0,))
    got = gate.end()
    rows = lines(gate.run)
    check(got.returncode == 0 and [(row["staleness/mean"], row["staleness/max"]) for row in rows] == [(0, 0), (1, 1)],
          "complete before the switch", (got, rows))
    check(len([*gate.gate.glob("began-*")]) == 2, "no more environments than the run needs", [*gate.gate.iterdir()])


def overlapping(folder):
    """The environments of the next step begin before a step has trained, and no more of them than --parallel."""
    gate = Gate(folder / "overlap", "--groups", 2, "--group-size", 2, "--steps", 4, "--max-off-policy", 2,
                "--parallel", 5).start()
    for task in (0, 1):
        gate.sampled(task)
    gate.sampled(2, n=1)
    check(len([*gate.gate.glob("at-*")]) == 5 and not lines(gate.run), "five at once", [*gate.gate.iterdir()])
    gate.let(())
    got = gate.end()
    check(got.returncode == 0 and once_each(gate.run) == [1, 2, 3, 4] and
          len([*gate.gate.glob("at-*-1")]) == 16 + len([*gate.gate.glob("at-*-2")]), "they all end", got)


def interrupted(folder):
    """Ctrl-C while environments run keeps each step that was made, and no process stays."""
    gate = Gate(folder / "interrupted", "--groups", 1, "--group-size", 2, "--steps", 4, "--max-off-policy", 1,
                "--save-every", 100).start()
    for step in (1, 2):
        gate.sampled(step - 1)
        gate.let((step - 1,))
        gate.steps(step)
    gate.sampled(2)
    check(commands_with(str(gate.gate)), "environments run")
    gate.process.send_signal(signal.SIGINT)
    got = gate.end()
    check(got.returncode == 130 and "The same command continues it" in got.stderr, "Ctrl-C", got)
    left = commands_with(str(gate.gate))
    check(not left, "no environment stays", left)
    gate.let(())
    got = gate.start().end()
    check(got.returncode == 0 and "resuming after step 2" in got.stderr and once_each(gate.run) == [1, 2, 3, 4],
          "both steps were kept", (got, lines(gate.run)))


def failing(folder):
    """Each kind of failure is counted, and more than --max-failed of a step end the run."""
    for how, name, more in (("crash", "crashed", ()), ("silent", "silent", ()), ("untold", "unrewarded", ()),
                            ("hang", "timed_out", ("--environment-timeout", 20))):
        run = folder / f"failing-{how}"
        n_steps = 1 if how == "hang" else 2
        got = tnk("rl", *play(how, "03"), "--local", "--run", run, "--steps", n_steps, *RUN[2:], "--groups", 1,
                  "--max-failed", 2, *more)
        check(got.returncode == 0 and [(row["failed"], row[f"failed/{name}"]) for row in lines(run)] == [(2, 2)] * n_steps,
              f"{how}: counted", (got, lines(run)))
    for how, more, words in (("crash", (), "exited with status 1: first second third, and the key is ****"),
                             ("hang", ("--environment-timeout", 1), "did not end within 1 s"),
                             ("deaf", ("--environment-timeout", 1), "did not end within 1 s"),
                             ("silent", (), "without a sample"), ("untold", (), "printed none")):
        run = folder / f"over-{how}"
        got = tnk("rl", *play(how, "01"), "--local", "--run", run, "--steps", 2, *RUN[2:], "--groups", 1, "--parallel", 1,
                  "--max-failed", 0, *more)
        check(got.returncode == 1 and "step 1: 1 of " in got.stderr and "--max-failed is 0" in got.stderr and
              words in got.stderr and not lines(run), f"{how}: ends the run", got)


def late_and_failing(folder):
    """The failures of a group that is left out count for the step, so the other groups do not hide them."""
    for most, code in ((1, 0), (0, 1)):
        gate = Gate(folder / f"bad{most}", "--groups", 1, "--group-size", 2, "--steps", 4, "--max-off-policy", 1,
                    "--max-failed", most)
        once = (f'cd "{gate.gate}"; if [ $TNK_RL_TASK$TNK_RL_MEMBER = 01 ] && mkdir once 2>/dev/null; '
                'then while [ ! -e go-0 ]; do sleep 0.01; done; exit 9; fi; ')
        gate.args[3] = once + gate.args[3]
        gate.start()
        gate.sampled(0, n=1)
        for step in (1, 2):
            gate.sampled(step)
            gate.let((step,))
            gate.steps(step)
        gate.let((0,))
        if code == 0:
            gate.steps(3)
            gate.let(())
        got = gate.end()
        rows = lines(gate.run)
        check(got.returncode == code and "step 3: 1 of " in got.stderr and "exited with status 9" in got.stderr and
              len(rows) == (4 if code == 0 else 2), f"--max-failed {most}: a late group fails", (got, rows))
        check(code == 1 or [(row["failed"], row["failed/crashed"], row["stale_groups"]) for row in rows] ==
              [(0, 0, 0), (0, 0, 0), (1, 1, 1), (0, 0, 0)], "counted with its step", rows)
    gate.let(())
    got = gate.start().end()
    check(got.returncode == 0 and "resuming after step 2" in got.stderr and once_each(gate.run) == [1, 2, 3, 4],
          "the steps before are kept", got)


def evaluated(folder):
    """Evaluations have the weights of their step, and share --parallel with the groups."""
    run, live = folder / "evaluated", folder / "live"
    live.mkdir()
    counts = f'mkdir "{live}/$$" && ls "{live}" | grep -c -v x >>"{live}x"; '
    both = [counts + play()[1] + f'; status=$?; rmdir "{live}/$$"; exit $status'] * 2
    got = tnk("rl", "--environment", both[0], "--evaluate", both[1], "--local", "--run", run, "--steps", STEPS, *RUN,
              "--parallel", 3, "--every", 1, "--evaluate-tasks", 4)
    seen = [int(line) for line in pathlib.Path(f"{live}x").read_text().split()]
    check(got.returncode == 0 and once_each(run) == [*range(1, STEPS + 1)] and
          all("eval/reward" in row and row["eval/failed"] == 0 for row in lines(run)), "each step is evaluated", (got, lines(run)))
    check(max(seen) <= 3 and len(seen) >= STEPS * 12, "three at once", seen)
    found = []
    for rate in ("0.02", "0.000000001"):
        got = tnk("rl", *play(), "--evaluate", play()[1], "--local", "--run", folder / f"eval-{rate}", "--steps", 1, *RUN,
                  "--learning-rate", rate)
        found.append(lines(folder / f"eval-{rate}"))
    check(found[0][0]["reward"] == found[1][0]["reward"] and found[0][0]["eval/reward"] != found[1][0]["eval/reward"],
          "with the new weights", found)


def used(run):
    saves = [json.loads(line) for line in (run / "checkpoints.jsonl").read_text().splitlines()]
    last = [line for line in saves if line.get("tnk") == "saved"][-1]
    return sum(last.get(f"tnk_{kind}_tokens", 0) for kind in ("prompt", "sampled", "trained", "doubtful"))


def limits(folder):
    """A limit ends the run with the state of the last complete step, and is never exceeded."""
    whole = folder / "whole"
    tnk("rl", *play(), "--local", "--run", whole, "--steps", STEPS, *RUN)
    total = used(whole)
    for share in (0.05, 0.5, 0.8):
        run = folder / f"limited-{share}"
        limit = int(total * share)
        args = ["rl", *play(), "--local", "--run", run, "--steps", STEPS, *RUN]
        got = tnk(*args, "--max-tokens", limit)
        check(got.returncode == 1 and "--max-tokens" in got.stderr and 0 < used(run) <= limit and len(lines(run)) < STEPS,
              f"{share}: ends within the limit", (got, used(run), limit))
        n_done = len(lines(run))
        got = tnk(*args, "--max-tokens", total * 3)
        check(got.returncode == 0 and once_each(run) == [*range(1, STEPS + 1)] and
              (n_done == 0 or f"resuming after step {n_done}" in got.stderr), f"{share}: a higher limit continues", got)


def killed(folder):
    """A run that was killed at any moment continues, and has each step once."""
    for seed in range(KILLS):
        draw = random.Random(seed)
        run = folder / f"killed-{seed}"
        args = [TNK, "rl", *play(), "--local", "--run", str(run), "--steps", str(STEPS), *map(str, RUN), "--verbose"]
        for _ in range(2):
            with subprocess.Popen(args, env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) as process:
                at = draw.randrange(1, 400)
                for n, _ in enumerate(process.stderr):
                    if n == at:
                        break
                process.kill()
        got = subprocess.run(args, env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        check(got.returncode == 0 and once_each(run) == [*range(1, STEPS + 1)] and weights(run, run / "served"),
              f"killed, seed {seed}: each step once", (got.stderr[-2000:], lines(run)))
    for who in ("client", "server", "both"):
        for seed in range(KILLS):
            draw = random.Random(f"{who}{seed}")
            at = tuple(sorted(draw.sample(range(25 if who == "server" else 4, 110), 2)))
            pair = Pair(folder / f"apart-{who}-{seed}", [*play(), "--steps", STEPS, *RUN], "rl")
            code = pair.all(who, at)
            check(who != "server" or pair.n_again == 0, "it is one process", (pair.n_again, pair.said))
            check(code == 0 and once_each(pair.run) == [*range(1, STEPS + 1)] and
                  weights(pair.run, pathlib.Path(f"{pair.run}-served")) and
                  all(row["staleness/max"] <= 1 for row in lines(pair.run)),
                  f"{who} killed at the requests {at}: each step once", (code, pair.said, lines(pair.run)))


def unchanged(folder):
    """0 is the run without the option, which neither its configuration nor its metrics have."""
    runs = [folder / "without", folder / "with0"]
    for run, more in zip(runs, ((), ("--max-off-policy", 0))):
        got = tnk("rl", *play(), "--local", "--run", run, "--steps", 2, *RUN[:-2], *more)
        check(got.returncode == 0, "it trains", got)
    check(metrics(runs[0]) == metrics(runs[1]) and "stale" not in metrics(runs[0]) and
          weights(runs[0], runs[0] / "served") == weights(runs[1], runs[1] / "served") and
          "off-policy" not in (runs[1] / "config.json").read_text(), "0 changes nothing", metrics(runs[1]))
    got = tnk("rl", *play(), "--local", "--run", runs[0], "--steps", 2, *RUN)
    check(got.returncode == 6 and "--max-off-policy" in got.stderr, "another run", got)
    got = tnk("rl", "--help")
    check("continues with the same steps, but not with the same results" in " ".join(got.stdout.split()), "the help says so", got.stdout)
    for more, words in ((("--max-off-policy", 65), "--max-off-policy"), (("--groups", 4096, "--max-off-policy", 4),
                        "one more than --max-off-policy is at most 65536")):
        got = tnk("rl", *play(), "--local", "--run", folder / "never", "--steps", 1, *RUN, *more)
        check(got.returncode == 2 and words in got.stderr and not (folder / "never").exists(), f"refused: {words}", got)


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    for case in (late, before_the_switch, overlapping, interrupted, failing, late_and_failing, evaluated, limits, killed, unchanged):
        with contextlib.suppress(FileExistsError):
            (top / case.__name__).mkdir()
        if os.environ.get("ONLY", case.__name__) == case.__name__:
            case(top / case.__name__)
plan()
