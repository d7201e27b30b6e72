#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the examples as a person would, each against a local server.

usage: run_examples.py CASE BUILD_DIR TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / name) for name in ("support", "gateway")]
from collector import Collector
from pipe import Paced
from ports import reserve
from tap import check, plan

BUILD = pathlib.Path(sys.argv[2])
TNK = sys.argv[3]
ENV = {k: v for k, v in os.environ.items() if not k.startswith("TINKER_")}
ENV["no_proxy"] = "*"
TEXT = "The cat sat on the mat. The dog sat on the log. " * 40
SMALL = ["--batch", "2", "--length", "32", "--rank", "4"]


def run(name, *args, **env):
    return subprocess.run([BUILD / "examples" / name, *args], env={**ENV, **env},
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=900)


def text_file(folder):
    path = pathlib.Path(folder, "text")
    path.write_text(TEXT)
    return str(path)


def hello():
    server = subprocess.Popen([TNK, "local", "--port", "0", "--exit-with-stdin"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=ENV, text=True)
    url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
    got = run("hello", TINKER_BASE_URL=url, TINKER_API_KEY="tml-local")
    server.stdin.close()
    check(got.returncode == 0, "hello succeeds", got)
    check(got.stdout.endswith("hello\n"), "hello has learned its word", got)
    check(server.wait(20) == 0, "the server ends with its input")


def otlp():
    with subprocess.Popen([TNK, "local", "--port", "0", "--exit-with-stdin"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=ENV, text=True) as server, Collector() as collector:
        url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
        service = {"TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"}
        got = run("otlp", **service)
        check(got.returncode == 0 and got.stdout.startswith("loss ") and not got.stderr, "without a collector", got)
        got = run("otlp", **service, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_SERVICE_NAME="run")
        check(got.returncode == 0 and not got.stderr, "with a collector", got)
        server.stdin.close()
    spans = collector.spans
    steps = [span for span in spans if span["name"] == "step"]
    check(len(steps) == 5 and {span["kind"] for span in steps} == {"internal"}, "a span for each step", spans)
    for step in steps:
        below = {span["name"] for span in spans if span["parent"] == step["id"] and span["trace"] == step["trace"]}
        check(below == {"forward_backward", "optim_step"}, "and below it its operations", (step, spans))
    check("create_lora" in {span["name"] for span in spans if span["parent"] is None}, "others begin a trace", spans)
    check(not any(span["is_error"] for span in spans) and
          all(span["start"] <= span["end"] for span in spans), "none has failed", spans)
    check(collector.metrics["train.step"] == [({}, 5)] and collector.metrics["tnk.otlp.dropped_spans"] == [({}, 0)],
          "the last values of the metrics come", collector.metrics)
    check({resource["service.name"] for resource in collector.resources} == {"run"}, "the name of the service")


def gateway():
    server = subprocess.Popen([TNK, "local", "--port", "0", "--exit-with-stdin"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=ENV, text=True)
    url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
    env = {**ENV, "TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"}
    served = subprocess.Popen([BUILD / "examples/gateway"], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    address = served.stderr.readline().strip()
    body = {"max_tokens": 4, "messages": [{"role": "user", "content": "Hi"}]}
    with urllib.request.urlopen(address + "/v1/chat/completions",
                                json.dumps(body).encode(), timeout=60) as answer:
        said = json.load(answer)
    check(said["usage"]["completion_tokens"] == 4, "an agent is answered", said)
    served.send_signal(signal.SIGINT)
    out, err = served.communicate(timeout=60)
    check(served.returncode == 0, "the gateway ends when asked to", err)
    lines = out.splitlines()
    check(len(lines) == 1 and len(json.loads(lines[0])["loss_fn_inputs"]) == 3,
          "the turn is printed as an example", out)
    server.stdin.close()
    server.wait(20)


def train_text():
    with tempfile.TemporaryDirectory() as folder:
        got = run("train_text", "--steps", "20", *SMALL, text_file(folder))
        check(got.returncode == 0, "training succeeds", got)
        end = re.fullmatch(r"loss_first=([\d.]+) loss_last=([\d.]+) steps=20 "
                           r"seconds=[\d.]+", got.stdout.splitlines()[-1])
        check(end, "the last line sums up", got.stdout)
        check(float(end[2]) < float(end[1]) - 0.2, "the loss falls", end)
        check(re.fullmatch(r"used: [1-9]\d* tokens of training, 8 of prompts, "
                           r"[1-9]\d* sampled; [1-9]\d* requests",
                           got.stdout.splitlines()[-2]),
              "the totals stand before it", got.stdout)
        check(len(re.findall(r"^step \d+/20 ", got.stdout, re.M)) == 20,
              "a pipe gets a line a step", got.stdout)
        check(re.search(r"^saved tinker://\S+", got.stdout, re.M),
              "a checkpoint is saved", got.stdout)
        check("before training" in got.stdout and "after training" in got.stdout,
              "samples are shown", got.stdout)
        got = run("train_text", "--json", "--steps", "3", *SMALL,
                  text_file(folder))
        lines = [json.loads(line) for line in got.stdout.splitlines()]
        check([line.get("step") for line in lines if "step" in line] == [1, 2, 3],
              "--json prints an object a step", got)
        check(lines[-1]["steps"] == 3, "--json ends with a summary", got)
        check(lines[-1]["tokens"]["prompt"] == 8, "--json has the totals", got)


def train_text_errors():
    cases = [
        (["--help"], {}, 0, "usage: train_text"),
        (["--steps", "0"], {}, 2, "is not a number from 1"),
        (["--lr", "-1"], {}, 2, "is not a learning rate"),
        (["--nonsense"], {}, 2, "Try train_text --help"),
        (["/nonexistent"], {}, 1, "cannot read /nonexistent"),
        ([], {"TINKER_API_KEY": "nonsense"}, 1, "key"),
        (["--model", "no/such-model", "--steps", "1"], {}, 1, "no/such-model"),
    ]
    for args, env, code, words in cases:
        got = run("train_text", *args, **env)
        check(got.returncode == code and words in got.stdout + got.stderr,
              f"train_text {' '.join(args)} exits with {code}", got)


def train_text_loses_its_server():
    with tempfile.TemporaryDirectory() as folder:
        training = subprocess.Popen(
            [BUILD / "examples/train_text", "--steps", "100000", *SMALL,
             text_file(folder)], env=ENV, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while "step 2/" not in (line := training.stdout.readline()):
            check(line, "training begins")
        children = f"/proc/{training.pid}/task/{training.pid}/children"
        os.kill(int(pathlib.Path(children).read_text()), signal.SIGKILL)
        _, err = training.communicate(timeout=60)
        check(training.returncode == 1 and "server has ended" in err,
              "training ends with its server", err)


def thread():
    got = run("thread", "One ", "Two ", "Three ")
    check(got.returncode == 0, "thread succeeds", got)
    check([line.split("|")[0] for line in got.stdout.splitlines()] ==
          ["One ", "Two ", "Three "], "every prompt is completed", got)


def post(url, text):
    with urllib.request.urlopen(url, data=text.encode(), timeout=60) as answer:
        return answer.read()


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:
        return True  # it closes right now


def sample_server():
    # Its port, once closed, is nobody else's.
    server = subprocess.Popen([BUILD / "examples" / "sample_server", str(reserve())],
                              stdin=subprocess.DEVNULL, env=ENV,
                              stdout=subprocess.PIPE, text=True)
    url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
    port = int(url.rsplit(":", 1)[1])
    # One that hangs up at once; the others must not notice.
    with socket.create_connection(("127.0.0.1", port)) as gone:
        gone.sendall(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: post(url, f"Client {i}: "), range(32)))
    check(all(answers), "thirty-two clients are answered", answers)
    try:
        post(url, "x" * 5000)
        check(False, "a prompt that is too long is refused")
    except urllib.error.HTTPError as err:
        check(err.code == 400, "a prompt that is too long is refused", err)
    with socket.create_connection(("127.0.0.1", port)) as late:
        post(url, "The server knows of it: ")
        server.send_signal(signal.SIGINT)
        while listens(port):
            pass
        late.sendall(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab")
        got = late.recv(100)
        check(got.startswith(b"HTTP/1.1 503 "), "it asks too late", got)
    check(server.wait(60) == 0, "Ctrl-C ends the server")


def chats(folder):
    """Questions and answers; every fifth is another one."""
    path = pathlib.Path(folder, "chats")
    path.write_text("".join(json.dumps({"messages": [
        {"role": "user", "content": f"say {i % 5}"},
        {"role": "assistant", "content": "ab" * (i % 5 + 1)}]}) + "\n"
        for i in range(60)))
    return str(path)


def serve(folder, *args):
    server = subprocess.Popen(
        [TNK, "local", "--port", "0", "--exit-with-stdin", "--data",
         pathlib.Path(folder, "data"), *args],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV, text=True)
    url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
    return server, {"TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"}


def sft():
    with tempfile.TemporaryDirectory() as folder:
        server, env = serve(folder)
        state = str(pathlib.Path(folder, "state"))
        got = run("sft", chats(folder), state, "12", "6", **env)
        check(got.returncode == 0, "fine-tuning succeeds", got)
        losses = [float(x) for x in re.findall(r"held-out loss (\S+)",
                                               got.stdout)]
        check(len(losses) == 2 and losses[1] < losses[0],
              "the loss of what was held out falls", got)
        lines = pathlib.Path(state, "checkpoints.jsonl").read_text()
        saved = [line for line in lines.splitlines()
                 if '"state_path":"tinker://' in line]
        check(saved and '"batch":12,' in saved[-1],
              "the last checkpoint is noted", lines)
        got = run("sft", chats(folder), state, "15", "6", **env)
        check(got.returncode == 0 and "resuming at step 12" in got.stdout and
              "step 13 loss" in got.stdout and "step 12 loss" not in got.stdout,
              "a second run goes on where the first ended", got)
        server.stdin.close()
        server.wait(20)
        got = run("sft", "/nonexistent", state)
        check(got.returncode == 1 and "cannot be read" in got.stderr,
              "a file that is not there is told", got)


def rl():
    with tempfile.TemporaryDirectory() as folder:
        server, env = serve(folder, "--faults", "mild=5%")
        state = str(pathlib.Path(folder, "state"))
        got = run("rl", state, "8", **env)
        check(got.returncode == 0, "learning from rewards succeeds", got)
        rewards = [float(x) for x in re.findall(r"reward (\S+)", got.stdout)]
        check(len(rewards) == 8 and rewards[-1] > rewards[0],
              "the reward rises", got)
        server.stdin.close()
        server.wait(20)


def survive(name, args, number_of, words, when):
    """Kill the server after some steps, and start it again with its files. Each step is made
    once: its number and its result are those of a run without kills. When the server is killed,
    the program waits to print the next step but one at most, so the kills and the last step
    are three steps apart."""
    said, batches = [], []
    for kills in ((), when):
        with tempfile.TemporaryDirectory() as folder:
            left, steps = list(kills), {}
            line = [TNK, "local", "--port", str(reserve()), "--exit-with-stdin", "--data",
                    pathlib.Path(folder, "data")]

            def serve_again():
                server = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          env=ENV, text=True)
                return server, server.stdout.readline().split()[-1]
            server, url = serve_again()
            program = Paced(
                [BUILD / "examples" / name, *(arg(folder) for arg in args)], stdin=subprocess.DEVNULL,
                env={**ENV, "TINKER_BASE_URL": url, "TINKER_API_KEY": "tml-local"})
            back = 0
            for text in program.lines:
                back += words in text
                found = number_of.match(text)
                if found:
                    steps[found[1]] = found[2]
                if found and left and found[1] == left[0]:
                    left.pop(0)
                    server.kill()
                    server.wait()
                    server.stdout.close()
                    server.stdin.close()
                    server, _ = serve_again()
            check(program.wait(60) == 0, f"{name} ends well, killed after {kills}", program.returncode)
            # The first one comes before anything is saved, and the model is made again.
            check(back >= len(kills) - 1 and not left,
                  f"{name} returns to a saved step after each kill", (back, left))
            said.append(steps)
            lines = pathlib.Path(folder, "state", "checkpoints.jsonl").read_text().splitlines()
            batches.append([json.loads(line)["batch"] for line in lines if '"state_path":"tinker://' in line])
            server.stdin.close()
            server.wait(20)
            server.stdout.close()
    check(said[0] == said[1], f"{name} makes every step once", said)
    # A save that was lost is due again at the next step, which may be between two others.
    check(batches[1] == sorted(set(batches[1])) and set(batches[0]) <= set(batches[1]),
          f"{name} notes each save once, in order", batches)


def sft_survives():
    survive("sft", (chats, lambda folder: str(pathlib.Path(folder, "state")), lambda _: "12", lambda _: "4"),
            re.compile(r"step (\d+) loss (\S+)"), "resuming at step", ("1", "6", "9"))


def rl_survives():
    survive("rl", (lambda folder: str(pathlib.Path(folder, "state")), lambda _: "9"),
            re.compile(r"iteration (\d+) reward (\S+)"), "resuming at iteration", ("0", "3", "6"))


def agent_rl():
    """Over a service that fails at times; then on this machine."""
    script = str(pathlib.Path(__file__).resolve().parents[2] / "examples/agent_rl.sh")

    def learn(run, n, **env):
        got = subprocess.run(["sh", script, BUILD, run, str(n)], env={**ENV, **env}, timeout=900,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        check(got.returncode == 0 and re.search(r"^weights +tinker://\S+", got.stdout, re.M), "its weights are told", got)
        return recorded(run / "metrics.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "drawn")
        server, env = serve(folder, "--faults", "mild=5%", "--sample-log", log)
        steps = learn(pathlib.Path(folder, "run"), 5, **env)
        server.stdin.close()
        server.wait(20)
        check(len(steps) == 5 and steps[0]["reward"] < 0.1 and steps[-1]["reward"] > 0.9, "the reward rises", steps)
        check(all(step["failed"] == 0 and abs(step["kl"]) < 1e-4 for step in steps),
              "no agent fails, and all samples are of the weights of their step", steps)
        drawn = recorded(log)
        check(len({line["weights"] for line in drawn}) == 5, "each step has weights of its own", drawn[:1])
        check(len(learn(pathlib.Path(folder, "own"), 1)) == 1, "on this machine")


def recorded(path):
    """Lines of JSON, whose texts may hold what Python takes for their end."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def foreign_loop():
    got = subprocess.run([BUILD / "examples/foreign_loop"], env=ENV,
                         input="".join(f"line {i}\n" for i in range(20)),
                         capture_output=True, text=True, timeout=240)
    check(got.returncode == 0, "the foreign loop ends", got)
    check(sorted(line.split("|")[0] for line in got.stdout.splitlines()) ==
          sorted(f"line {i}" for i in range(20)), "all lines are answered", got)


CASES = {f.__name__: f for f in
         (hello, otlp, train_text, train_text_errors, train_text_loses_its_server,
          thread, sample_server, sft, sft_survives, gateway, rl,
          rl_survives, agent_rl, foreign_loop)}
CASES[sys.argv[1]]()
plan()
