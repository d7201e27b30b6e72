# SPDX-License-Identifier: MIT
"""Runs of tnk train and tnk rl, which are killed and compared.

KILLS=20 makes so many for each row of the matrix.
"""
import fcntl
import json
import os
import pathlib
import random
import subprocess
import threading
import time

from console import CLEAN, TNK, Local, check
from ports import reserve

KILLS = int(os.environ.get("KILLS", "2"))
STEPS = 12
RATES = ("--batch", "4", "--learning-rate", "0.01")
RUN = ("--steps", STEPS, *RATES, "--save-every", "4", "--eval-split", "0.2", "--eval-every", "3",
       "--schedule", "cosine", "--warm-up", "2")


def chat(question, answer):
    return {"messages": [{"role": "user", "content": question},
                         {"role": "assistant", "content": answer}]}


# The model that was never trained gives each id the same probability.
LOGPROB = -5.55


def example(prompt, said, advantage=0.0, **more):
    """An example of the loss importance_sampling, whose ids are bytes."""
    ids = [*prompt.encode(), *said.encode()]
    n_given = len(prompt.encode()) - 1
    return {"model_input": {"chunks": [{"type": "encoded_text", "tokens": ids[:-1]}]},
            "loss_fn_inputs": {
                "target_tokens": {"data": ids[1:], "dtype": "int64"},
                "logprobs": {"data": [0.0] * n_given + [LOGPROB] * len(said), "dtype": "float32"},
                "advantages": {"data": [0.0] * n_given + [advantage] * len(said), "dtype": "float32"}}, **more}


# Prompts, what was sampled, and rewards.
PLAYED = [(f"{i // 5}?", "ab" if i % 5 < 2 else "cd", float(i % 5 < 2)) for i in range(25)]


def write(path, chats):
    path.write_text("".join(json.dumps(c) + "\n" for c in chats))
    return path


def metrics(run):
    return (run / "metrics.jsonl").read_text()


def weights(run, served):
    """The bytes of the final weights and of the optimizer state."""
    last = [json.loads(line) for line in (run / "checkpoints.jsonl").read_text().splitlines()][::-1]
    entry = next(e for e in last if e.get("final") and "sampler_path" in e)
    found = {}
    for path in (entry["state_path"], entry["sampler_path"]):
        model, kind, name = path.removeprefix("tinker://").split("/")
        for file in sorted((served / model.replace(":", "_") / kind / name).iterdir()):
            if file.name != "meta.json":
                found[kind, file.name] = file.read_bytes()
    return found


def ended_in_the_middle(args, run, n_steps, number):
    """Send a signal to a run after n_steps steps. The run cannot end before: its standard error is
    a pipe with room for about as many lines, which nobody reads until then. Returns the process
    and what it has said."""
    back, front = os.pipe()
    filled = os.write(front, b"\n" * (fcntl.fcntl(front, fcntl.F_SETPIPE_SZ, 4096) - 100 * n_steps))
    with open(back) as file, subprocess.Popen(args, env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                              stderr=front) as process:
        os.close(front)
        steps = run / "metrics.jsonl"
        while process.poll() is None and not (steps.exists() and steps.read_text().count("\n") >= n_steps):
            time.sleep(0.002)
        process.send_signal(number)
        said = file.read()[filled:]
    return process, said


class Pair:
    """A server with its folder and a client, which may be killed and started again."""

    def __init__(self, run, args, command="train"):
        self.run, self.args, self.command = run, args, command
        self.port = str(reserve())
        self.server = self.client = None
        self.n_seen, self.n_again, self.kill_at, self.who = 0, 0, (), ""
        self.until = None  # kills when it returns a true value for a request

    def serve(self, *more):
        self.server = subprocess.Popen(
            [TNK, "local", "--port", self.port, "--verbose", "--data", str(self.run) + "-served",
             "--exit-with-stdin", *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=CLEAN)
        url = self.server.stdout.readline().split()[-1]
        threading.Thread(target=self.watch, args=(self.server,), daemon=True).start()
        return url

    def watch(self, server):
        """Count requests, and kill at the ones that were drawn."""
        for line in server.stderr:
            self.n_seen += 1
            if (self.kill_at and self.n_seen == self.kill_at[0]) or (self.until and self.until(line)):
                self.kill_at, self.until = self.kill_at[1:], None
                for name in ("client", "server"):
                    if self.who in (name, "both"):
                        getattr(self, name).kill()

    def train(self, url):
        return subprocess.Popen(
            [TNK, self.command, *map(str, self.args), "--model", "tnk/byte-lm", "--run", self.run],
            env={**CLEAN, "TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def restart(self, n_left):
        """Wait until one has ended. Start again what was killed. Returns what to do next."""
        url = f"http://127.0.0.1:{self.port}"
        if self.who in ("server", "both") and self.server.poll() is not None:
            self.server.wait()
            self.serve()
        try:
            self.client.wait(0.02)
        except subprocess.TimeoutExpired:
            return n_left
        self.said = self.client.stderr.read()
        if self.client.returncode == 0 or n_left == 0:
            return -1
        self.client.stderr.close()
        if self.server.poll() is not None:
            self.server.wait()
            self.serve()
        self.client = self.train(url)
        self.n_again += 1
        return n_left - 1

    def all(self, who, kill_at):
        self.who, self.kill_at = who, kill_at
        self.client = self.train(self.serve())
        n_left = 2 * len(kill_at) + 1
        while n_left >= 0:
            n_left = self.restart(n_left)
        code = self.client.returncode
        self.client.stderr.close()
        self.server.stdin.close()
        self.server.wait(60)
        return code


def lost_result(folder, args, plain, at, name="sft", command="train"):
    """The service makes state `at` of a run, and is lost before it can say so. The run knows that it may
    exist, and looks for it. It is killed when it has continued."""
    pair = Pair(folder / f"{name}-result-{at}", args, command)
    served = pathlib.Path(f"{pair.run}-served")
    pair.until = lambda _: [*served.glob(f"*/weights/save-{at}/meta.json")]
    pair.who = "server"
    # The service serves each request of this save, and its answers are lost.
    client = pair.train(pair.serve("--faults", f"drop_after_commit/save_weights@{at}-"))
    pair.server.wait()
    pair.serve()
    said = []
    for line in client.stderr:
        said.append(line)
        if "the model was restored after step" in line:
            break
    client.kill()
    client.wait()
    client.stderr.close()
    pair.server.stdin.close()
    pair.server.wait(60)
    n_kept = len(metrics(pair.run).splitlines())
    code = pair.all("", ())
    check(code == 0 and metrics(pair.run) == metrics(plain) and weights(pair.run, served) ==
          weights(plain, plain / "served"), f"{name}: the result of save {at} is lost: the same metrics and weights",
          (code, pair.said, said))
    check(f"restored after step {n_kept}\n" in said[-1] and f"resuming after step {n_kept}\n" in pair.said and
          "missing" not in pair.said, f"{name}: the result of save {at} is lost: no step is trained again", (said, pair.said))


def killed_at_the_end(folder, args, plain, name="sft", command="train"):
    """Killed after the final state is noted, and before an earlier one is deleted. The same command deletes them."""
    run = folder / f"{name}-end"
    served = pathlib.Path(f"{run}-served")
    ledger = run / "checkpoints.jsonl"
    args = [command, *map(str, args), "--model", "tnk/byte-lm", "--run", run]
    with Local("--verbose", "--data", served, "--faults", "503/training_runs@1-") as server:
        with subprocess.Popen([TNK, *args], env={**CLEAN, **server.env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while "/training_runs/" not in server.process.stderr.readline() or '"sampler_path"' not in ledger.read_text():
                pass
            process.kill()

    def states():
        return [path.parent.name for path in served.glob("*/weights/*/meta.json")]

    check(len(states()) > 1, f"{name}: killed at the end: earlier states are left", states())
    with Local("--data", served) as server:
        got = server(*args)
    check(got.returncode == 0 and len(states()) == 1 and metrics(run) == metrics(plain) and
          weights(run, served) == weights(plain, plain / "served"), f"{name}: the same command deletes them", (got, states()))


def killed_local(folder, args, plain, name="sft", command="train", steps=STEPS):
    """SIGKILL of the one process that has both, at seeded steps."""
    for seed in range(KILLS):
        draw = random.Random(seed)
        run = folder / f"{name}-local-{seed}"
        args_all = [TNK, command, *map(str, args), "--local", "--run", run]
        at = draw.sample(range(1, steps + 1), 2)
        for step in sorted(at):
            with subprocess.Popen(args_all, env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as process:
                for line in process.stderr:
                    if line.startswith(f"step {step}/"):
                        break
                process.kill()
        got = subprocess.run(args_all, env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=120)
        check(got.returncode == 0 and metrics(run) == metrics(plain) and
              weights(run, run / "served") == weights(plain, plain / "served"),
              f"{name} killed at {at}: the same metrics and weights", got)


def killed_apart(folder, args, plain, name="sft", command="train", before=None):
    """SIGKILL of the client, the server, or both, at seeded requests.

    before(folder) prepares the folder of a server.
    """
    for who in ("client", "server", "both"):
        for seed in range(KILLS):
            draw = random.Random(f"{who}{seed}")
            # The client waits for a server that is gone, if the run has begun.
            at = tuple(sorted(draw.sample(range(25 if who == "server" else 4, 110), 2)))
            pair = Pair(folder / f"{name}-{who}-{seed}", args, command)
            if before:
                before(pathlib.Path(f"{pair.run}-served"))
            code = pair.all(who, at)
            check(who != "server" or pair.n_again == 0, "it is one process", pair.n_again)
            same = code == 0 and metrics(pair.run) == metrics(plain)
            check(same and weights(pair.run, pathlib.Path(f"{pair.run}-served")) ==
                  weights(plain, plain / "served"),
                  f"{name}, {who} killed at the requests {at}: the same metrics and weights", (code, pair.said))
