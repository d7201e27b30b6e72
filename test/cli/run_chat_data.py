#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk chat-data, as a person would run it.

usage: run_chat_data.py TNK_COMMAND DATA_DIR

Output is TAP, see test/support/tap.py.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tap import check, plan

TNK, DATA = sys.argv[1:3]
TURNS = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + "
         "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}"
         "{{ '<|im_start|>assistant\n' }}{% endif %}")
TWO = {"messages": [{"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "Hello"},
                    {"role": "user", "content": "2+2?"},
                    {"role": "assistant", "content": "4"}]}


def run(*args, data, env=None):
    lines = "".join(json.dumps(d) + "\n" if d else "\n" for d in data)
    return subprocess.run([TNK, "chat-data", *args, "-"], input=lines, text=True,
                          capture_output=True, timeout=60,
                          env={**os.environ, "NO_COLOR": "1", **(env or {})})


def trained(datum):
    """The bytes of the targets that have a weight."""
    targets = datum["loss_fn_inputs"]["target_tokens"]["data"]
    weights = datum["loss_fn_inputs"]["weights"]["data"]
    return bytes(t for t, w in zip(targets, weights) if w).decode()


def bytes_and_plain():
    got = run(data=[TWO, None, TWO["messages"][:2]])
    data = [json.loads(line) for line in got.stdout.splitlines()]
    check(got.returncode == 0 and len(data) == 2, "a datum a conversation", got.stderr)
    check([trained(d) for d in data] == [" 4\n\nUser:", " Hello\n\nUser:"], "the last answers", data)
    tokens = data[1]["model_input"]["chunks"][0]["tokens"]
    check(bytes(tokens).decode() == "User: Hi\n\nAssistant: Hello\n\nUser",
          "the tokens", tokens)
    check("2 conversations" in got.stderr, "what was done is told", got.stderr)
    lint = subprocess.run([TNK, "lint", "--loss", "cross_entropy", "-"], input=got.stdout,
                          capture_output=True, text=True, timeout=60)
    check(lint.returncode == 0 and lint.stdout == "2 examples, 0 wrong\n", "lint takes them",
          lint.stdout)
    got = run("--train-on", "all-answers", data=[TWO])
    check(trained(json.loads(got.stdout)) == " Hello\n\n 4\n\nUser:", "all answers", got.stdout)
    got = run("--train-on", "roles", "--role", "user", data=[TWO])
    check(trained(json.loads(got.stdout)) == " Hi\n\n 2+2?\n\n", "a role", got.stdout)


def shown():
    got = run("--show", data=[TWO])
    check(got.stdout.splitlines()[1:] == [
        '  given       "User: Hi\\n\\nAssistant: Hello\\n\\nUser: 2+2?\\n\\nAssistant:"',
        '  trained (1) " 4\\n\\nUser:"'], "what is trained is shown", got.stdout)
    got = run("--show", data=[TWO], env={"NO_COLOR": "", "FORCE_COLOR": "1"})
    check("\x1b[32m 4\n\nUser:\x1b[0m" in got.stdout, "in colors", got.stdout)
    odd = {"messages": [{"role": "user", "content": "\x1b[31m"},
                        {"role": "assistant", "content": "a\x07"}]}
    got = run("--show", data=[odd], env={"NO_COLOR": "", "FORCE_COLOR": "1"})
    check("\x1b[31m" not in got.stdout and "\x07" not in got.stdout,
          "and nothing else acts on the terminal", got.stdout)
    got = run("--count", data=[TWO])
    check(got.stdout == "1: 59 tokens, 9 trained\n", "tokens are counted", got.stdout)


def templates():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "chat_template.jinja")
        path.write_text(TURNS)
        model = ["--tokenizer", DATA + "/qwen2.json", "--template", str(path)]
        got = run(*model, "--renderer", "qwen3_instruct", "--show", data=[TWO])
        check('  trained (1) "4<|im_end|>"' in got.stdout, "a template, its stop", got.stdout)
        got = run(*model, "--renderer", "qwen3_instruct", "--by-parts", "--show", data=[TWO])
        check('  trained (1) "4<|im_end|>"' in got.stdout, "by parts", got.stdout)
        path.write_text("{{ a }}" + TURNS)
        got = run(*model, "--set", 'a="x=y"', "--show", data=[TWO])
        check("x=y<|im_start|>user" in got.stdout, "a variable", got.stdout)
        path.write_text("{% nonsense %}")
        got = run(*model, data=[TWO])
        check(got.returncode == 6 and "nonsense" in got.stderr, "no template", got.stderr)
        path.write_text("{{ strftime_now('%Y') }}" + TURNS)
        got = run(*model, "--show", data=[TWO])
        check(got.returncode == 0 and '"20' in got.stdout, "a template has the date", got.stdout)


def wrong():
    got = run(data=[TWO, {"messages": [{"role": "user", "content": "Hi"}]}, {"messages": 7}])
    check(got.returncode == 1 and len(got.stdout.splitlines()) == 1, "others are still given",
          got.stdout)
    check(":2: " in got.stderr and ":3: " in got.stderr and "2 wrong" in got.stderr,
          "lines that cannot be trained are named", got.stderr)
    for args in (["--role", "user"], ["--train-on", "roles"], ["--set", "a"], ["--set", "=1"],
                 ["--renderer", "nobody"], ["--model", "a/b"], ["--show", "--count"],
                 ["--train-on", "nothing"], ["--each-answer", "--train-on", "roles"], ["--revision", "x"],
                 ["--model", "a/b", "--tokenizer", "c"]):
        got = run(*args, data=[TWO])
        check(got.returncode == 2 and got.stdout == "", f"refused: {' '.join(args)}", got.stderr)
    got = subprocess.run([TNK, "chat-data", "/nowhere"], capture_output=True, timeout=60)
    check(got.returncode == 6, "a file that is not there", got.stderr)


def each_answer():
    """A template that leaves earlier thoughts out: all answers are refused, with the way out."""
    thinks = ("{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
              "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}"
              "{{ m.role }}:{% if m.thinking and loop.index0 > ns.last %}({{ m.thinking }}){% endif %}"
              "{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}")
    chat = {"messages": [m | {"thinking": "t"} if m["role"] == "assistant" else m
                         for m in TWO["messages"]]}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "chat_template.jinja")
        path.write_text(thinks)
        config = pathlib.Path(folder, "tokenizer_config.json")
        config.write_text(json.dumps({"eos_token": "<|end|>"}))
        got = run("--template", folder, "--train-on", "all-answers", "--show", data=[chat])
        check(got.returncode == 1 and "message 1 " in got.stderr and "--each-answer accepts" in got.stderr,
              "refused, with a way out", got.stderr)
        got = run("--template", folder, "--each-answer", "--show", data=[chat, TWO["messages"]])
        check([line for line in got.stdout.splitlines() if "trained" in line] == [
            '  trained (1) "(t)Hello<|end|>"', '  trained (1) "(t)4<|end|>"',
            '  trained (1) "Hello<|end|>"', '  trained (1) "4<|end|>"'], "an example of each answer", got.stdout)
        check("2 conversations" in got.stderr, "conversations are counted", got.stderr)
        path.write_text(thinks.replace("assistant:{% endif", "assistant:(s{% endif"))
        got = run("--template", folder, "--train-on", "all-answers", "--show", data=[chat])
        check(got.returncode == 1 and "message 1 " in got.stderr and "--each" not in got.stderr,
              "nothing is offered that does not work either", got.stderr)
        got = run("--each-answer", data=[TWO["messages"][:1], TWO])
        check(got.returncode == 1 and len(got.stdout.splitlines()) == 2 and ":1: " in got.stderr,
              "a conversation without answers", got.stderr)


bytes_and_plain()
each_answer()
shown()
templates()
wrong()
plan()
