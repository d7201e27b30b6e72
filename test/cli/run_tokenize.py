#!/usr/bin/env python3
"""tnk tokenize and tnk detokenize, as a person would run them.

usage: run_tokenize.py TNK_COMMAND DATA_DIR

Output is TAP with one point a check.
"""
import json
import subprocess
import sys

TNK, DATA = sys.argv[1:3]
MODEL = ["--tokenizer", DATA + "/qwen2.json"]
N_CHECKS = FAILED = 0


def check(ok, what, got=""):
    global N_CHECKS, FAILED
    N_CHECKS += 1
    FAILED += not ok
    print(f"{'ok' if ok else 'not ok'} {N_CHECKS} - {what}")
    if not ok:
        print("# " + str(got).replace("\n", "\n# "))


def run(*args, data=b""):
    return subprocess.run([TNK, *args], input=data, capture_output=True,
                          timeout=60)


def main():
    text = "Word 中文 é\n<|im_end|> \"x\"\t"
    got = run("tokenize", *MODEL, data=text.encode())
    ids = got.stdout.split()
    check(got.returncode == 0 and ids, "ids of the standard input", got)
    back = run("detokenize", *MODEL, *map(bytes.decode, ids))
    check(back.stdout.decode() == text, "and back", back)
    back = run("detokenize", *MODEL, data=b"[" + b", ".join(ids) + b"]")
    check(back.stdout.decode() == text, "ids from the standard input", back)
    back = run("detokenize", *MODEL, "--skip-special", "--json",
               *map(bytes.decode, ids))
    check(json.loads(back.stdout) == {"text": text.replace("<|im_end|>", "")},
          "without special tokens, as JSON", back)
    got = run("tokenize", *MODEL, "--count", "--text", text)
    check(int(got.stdout) == len(ids), "--count", got)
    got = run("tokenize", *MODEL, "--json", "--pieces", "--text", text)
    found = json.loads(got.stdout)
    check(found["ids"] == [int(i) for i in ids] and
          found["count"] == len(ids) == len(found["pieces"]) and
          found["pieces"][-1]["end"] == len(text.encode()),
          "--json --pieces", got)
    got = run("tokenize", *MODEL, "--pieces", "--text", "a<|im_end|>")
    lines = got.stdout.decode().splitlines()
    check(len(lines) == 2 and lines[1].endswith(' 1 11 "<|im_end|>"'),
          "--pieces", got)
    got = run("tokenize", *MODEL, "--plain", "--text", "<|im_end|>")
    check(len(got.stdout.split()) > 1, "--plain", got)
    got = run("tokenize", *MODEL, "--add-special", "--text", "")
    check(len(got.stdout.split()) == 1, "--add-special", got)
    got = run("tokenize", *MODEL, data=b"ab\xff")
    check(got.returncode == 1 and b"byte 2" in got.stderr, "no UTF-8", got)
    got = run("tokenize", *MODEL, "--lossy", data=b"ab\xff")
    check(got.returncode == 0, "--lossy", got)
    got = run("tokenize", "--tokenizer", DATA + "/none", data=b"")
    check(got.returncode == 1 and b"none" in got.stderr, "no such file", got)
    for args in (["tokenize"], ["tokenize", *MODEL, "--nonsense"],
                 ["tokenize", "--tokenizer"], ["detokenize"],
                 ["detokenize", *MODEL, "--nonsense"]):
        got = run(*args)
        check(got.returncode == 2 and b"--help" in got.stderr,
              " ".join(a for a in args if "/" not in a), got)
    got = run("detokenize", *MODEL, "12x")
    check(got.returncode == 1 and b"no id: x" in got.stderr, "12x", got)
    for command in ("tokenize", "detokenize"):
        got = run(command, "--help")
        check(got.returncode == 0 and b"usage" in got.stdout,
              f"{command} --help", got)
    print(f"1..{N_CHECKS}")
    return FAILED != 0


sys.exit(main())
