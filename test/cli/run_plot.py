#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk plot: the metrics of a run as curves in the terminal.

usage: run_plot.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json
import pathlib
import tempfile

from console import check, plan, tnk

UTF8 = {"LC_ALL": "C.UTF-8"}
ASCII = {"LC_ALL": "C"}


def line(step, **values):
    return json.dumps({"step": step, **{key.replace("__", "/"): value for key, value in values.items()}}) + "\n"


def folder_of(path, lines):
    path.mkdir(parents=True)
    (path / "metrics.jsonl").write_text("".join(lines))
    return path


def falling(n, scale=4.0):
    """A run with a loss at each step and an evaluation at each tenth one."""
    for i in range(1, n + 1):
        more = {"eval__loss": 0.5 + scale / (i + 1)} if i % 10 == 0 else {}
        yield line(i, train__loss=scale / i, learning_rate=0.01 * (1 - (i - 1) / n), **more)


# The run of 60 steps at 80 columns, at 40 columns, and without UTF-8.
WIDE = """\
⠤ train/loss  last 0.06667  min 0.06667 at step 60
o eval/loss   last 0.5656  min 0.5656 at step 60
     4 ┤⡇
       │⡇
       │⢱
       │⢸
  2.95 ┤⢸
       │⢸
       │⠈⡆
       │ ⡇
   1.9 ┤ ⢣
       │ ⠘⡄
       │  ⢣
       │  ⠈⢆
 0.853 ┤   ⠈⠢⡀     o
       │     ⠈⠢⢄⡀              o           o           o           o           o
       │        ⠈⠑⠢⠤⠤⣀⣀⣀⣀
0.0667 ┤                 ⠉⠉⠉⠑⠒⠒⠒⠒⠒⠒⠒⠒⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⢄⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀
       └────────────────────────────────────────────────────────────────────────
        step 1                                                                60
"""
NARROW = """\
⠤ train/loss  last 0.06667  min 0.06667
o eval/loss   last 0.5656  min 0.5656
     4 ┤⡇
       │⡇
       │⢱
       │⢸
  1.75 ┤⠸⡀
       │ ⢇
       │ ⠈⠢⡀ o    o    o     o    o    o
0.0667 ┤   ⠈⠉⠑⠒⠒⠤⠤⠤⠤⠤⠤⠤⠤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀
       └────────────────────────────────
        step 1                        60
"""
PLAIN = """\
* train/loss  last 0.06667  min 0.06667
o eval/loss   last 0.5656  min 0.5656
     4 +*
       |*
       |*
       |*
  1.75 +**
       | *
       | *** o    o    o     o    o    o
0.0667 +   *****************************
       +--------------------------------
        step 1                        60
"""


def exact(run):
    got = tnk("plot", run, "--width", 80, env=UTF8)
    check(got.returncode == 0 and got.stdout == WIDE, "80 columns", got.stdout)
    check(tnk("plot", run, env=UTF8).stdout == WIDE, "80 columns without a terminal")
    got = tnk("plot", run, "--width", 40, env=UTF8)
    check(got.stdout == NARROW, "40 columns", got.stdout)
    got = tnk("plot", run, "--width", 40, env=ASCII)
    check(got.stdout == PLAIN and got.stdout.isascii(), "ASCII characters", got.stdout)
    for width in (20, 41, 133):
        for env in (UTF8, ASCII):
            said = tnk("plot", run, "--width", width, env=env).stdout.splitlines()
            check(max(map(len, said)) == width, f"{width} columns", said)
    check(tnk("plot", run / "metrics.jsonl", "--width", 80, env=UTF8).stdout == WIDE, "a file of metrics")
    for name in ("de_DE.utf8", "en_US.UTF-8@euro"):
        check(tnk("plot", run, env={"LC_ALL": "", "LC_CTYPE": "", "LANG": name}).stdout == WIDE, f"the locale {name}")


def two_runs(top, run):
    other = folder_of(top / "other", falling(30, 2.0))
    said = tnk("plot", run, other, "--width", 60, env=UTF8).stdout.splitlines()
    check([row.split("  ")[0] for row in said[:4]] ==
          ["⠤ first: train/loss", "o other: train/loss", "x first: eval/loss", "+ other: eval/loss"],
          "the curves of two runs", said)
    check(all(any(mark in row for row in said[4:]) for mark in "ox+⡇"), "each has its marks", said)
    said = tnk("plot", run, other, "--color", "always", env=UTF8).stdout
    check(all(f"\033[{n}m" in said for n in (36, 33, 35, 32)), "each has its color", said)
    got = tnk("plot", run, other, "--metric", "learning_rate", "--json")
    said = json.loads(got.stdout)["curves"]
    check([(c["run"], c["metric"], c["first"]["value"], c["last"]["step"]) for c in said] ==
          [(str(run), "learning_rate", 0.01, 60), (str(other), "learning_rate", 0.01, 30)], "as JSON", said)
    got = tnk("plot", run, other, *["--metric", "train/loss"] * 3)
    check(got.returncode == 2 and "4 curves" in got.stderr, "too many curves", got)


def odd_metrics(top):
    """Files of other programs, and lines that are no metrics."""
    run = folder_of(top / "odd", [
        line(1, train__loss=2.0), "nonsense\n", "[1]\n", "\n", '{"step":-1,"train/loss":9}\n',
        '{"step":"x","train/loss":9}\n', line(2, train__loss=None, note="text", deep={"a": 1}),
        '{"step":3,"train/loss":9' + " " * (1 << 20) + "}\n", line(4.0, train__loss=1.0),
        '{"step":5,"train/loss":9}'])
    got = tnk("plot", run, "--json")
    curve, = json.loads(got.stdout)["curves"]
    check(curve["first"] == {"step": 1, "value": 2.0} and curve["last"] == {"step": 4, "value": 1.0} and
          curve["max"]["value"] == 2.0, "other lines are skipped", curve)
    run = folder_of(top / "steps", ['{"loss":3}\n', '{"loss":2}\n'])
    curve, = json.loads(tnk("plot", run, "--json").stdout)["curves"]
    check(curve["last"] == {"step": 1, "value": 2.0}, "lines without a step are counted", curve)
    run = folder_of(top / "again", [line(i, loss=i) for i in (*range(8), *range(3, 6))])
    curve, = json.loads(tnk("plot", run, "--json").stdout)["curves"]
    check(curve["last"]["step"] == 5 and curve["max"]["value"] == 5, "a resumed run", curve)
    run = folder_of(top / "peak", (line(i, loss=99 if i == 54321 else 1 + i % 2) for i in range(100000)))
    said = tnk("plot", run, "--width", 40, "--height", 5, env=ASCII).stdout.splitlines()
    check([row.count("*") for row in said[1:5]] == [1, 1, 1, 1] and "99 +" in said[1],
          "a peak of one step in 100,000", said)
    evil = "a\033[31m\u202eb/loss"
    run = folder_of(top / "evil\033", [json.dumps({"step": 1, evil: 1}) + "\n"])
    for args in ((), ("--metric", "x")):
        got = tnk("plot", run, *args, env=UTF8)
        check("\033" not in got.stdout + got.stderr and "\u202e" not in got.stdout + got.stderr,
              "no harmful character", got)


def one_value(top):
    run = folder_of(top / "one", [line(7, loss=0.25)])
    said = tnk("plot", run, "--width", 40, env=ASCII).stdout.splitlines()
    check(said[0].startswith("* loss  last 0.25  min 0.25") and "".join(said[1:-2]).count("*") == 1 and
          said[-1].strip() == "step 7", "one value", said)
    run = folder_of(top / "huge", [line(i, loss=v) for i, v in enumerate((-1.7e308, 1.7e308, 0))])
    got = tnk("plot", run, "--width", 40, env=ASCII)
    check(got.returncode == 0 and "inf" not in got.stdout and "nan" not in got.stdout, "the largest values", got)
    run = folder_of(top / "log", [line(i, loss=v) for i, v in enumerate((100, 0, 1))])
    said = tnk("plot", run, "--log", "--height", "9", env=ASCII).stdout.splitlines()
    check([row.split("+")[0].strip() for row in said if row.find("+") > 0][:3] == ["100", "10", "1"], "--log", said)


def refused(top, run):
    empty = folder_of(top / "empty", [])
    for args, status, words in (
            ([top], 6, "no metrics.jsonl"), ([top / "nowhere"], 6, "No such file"),
            ([empty], 1, "no metrics yet"), ([run, "--metric", "x"], 1, "train/loss, learning_rate, eval/loss"),
            ([run, run, run], 2, ""), ([], 2, "RUN"), ([run, "--width", 19], 2, "--width"),
            ([run, "--metric", "learning_rate", "--log", "--height", 2], 2, "--height")):
        got = tnk("plot", *args)
        check(got.returncode == status and words in got.stderr, f"refused: {words}", got)
    folder_of(top / "zero", [line(1, loss=0)])
    got = tnk("plot", top / "zero", "--log")
    check(got.returncode == 1 and "greater than 0" in got.stderr, "no value for --log", got)


with tempfile.TemporaryDirectory() as tmp:
    where = pathlib.Path(tmp)
    first = folder_of(where / "first", falling(60))
    exact(first)
    two_runs(where, first)
    odd_metrics(where)
    one_value(where)
    refused(where, first)
plan()
