#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk report: a run as one HTML file. It is opened in Chromium if there is one.

usage: run_report.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import base64
import contextlib
import hashlib
import html.parser
import json
import math
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile
import time

import browser
from console import CLEAN, TNK, check, plan, skip, tnk
from trackers import crc32c, events_of, of_run, rows_of

SECTIONS = ["Loss", "Reward", "KL and drift", "Learning rate", "Tokens", "Cost", "Other metrics",
            "Time by phase", "Samples", "Checkpoints", "Configuration", "Notices"]
EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>\u202e\033[31m"
SECRETS = ("tml-abcdefgh", "hf_abcdefgh", "hunter2", "s3cr3t", "sk-ant-abcdefgh")
VOID = {"meta", "link", "path", "br", "img"}


class Page(html.parser.HTMLParser):
    """The elements of a document, with a check that they are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], [], {}, []
        self.feed(text)
        self.close()
        check(self.open == [], "all elements are closed", self.open)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            check(False, f"</{tag}> ends its element", self.open)

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)

    def titles(self):
        return self.text.get("h2", [])


def write(folder, name, lines):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def saved(number, step, **more):
    path = f"tinker://run:train:0/weights/save-{number}"
    return {"name": f"save-{number}", "batch": step, "state_path": path, "tnk": "saved", "tnk_attempt": 1,
            "tnk_save": number, "tnk_steps": step, "tnk_time": 1795850000 + 60 * number,
            "tnk_trained_tokens": 1000 * step, "tnk_sampled_tokens": 500, "tnk_cost": 10**10 * step,
            "tnk_requests": 9, **more}


def run_of(folder, n=100, rate=0.01):
    """A run that has everything."""
    write(folder, "metrics.jsonl", ({
        "step": i, "train/loss": 2 + rate + 1 / i, "learning_rate": rate, "epoch": i / n, "tokens": 400 + i % 3,
        "usd": 0.01, "reward/mean": i / n, "kl/reference": 0.01, "time/train": 0.5, "time/sample_ms": 1500,
        "grad_norm": None if i == 7 else 1.5, **({"eval/loss": 2.5 + 1 / i} if i % 20 == 0 else {})}
        for i in range(1, n + 1)))
    write(folder, "checkpoints.jsonl", [
        {"name": "save-1", "tnk": "intent", "tnk_attempt": 1, "tnk_save": 1},
        saved(1, n // 4, rolling=True), saved(2, n // 2, tnk_ttl=604800),
        {"name": "save-1", "tnk": "deleted", "tnk_attempt": 1, "tnk_save": 1},
        {"name": "save-3", "tnk": "failed", "tnk_attempt": 2, "tnk_save": 1},
        saved(4, n, final=True, tnk_attempt=2, sampler_path="tinker://run:train:0/sampler_weights/save-4")])
    (folder / "config.json").write_text(json.dumps({
        "command": "tnk train", "began_s": 1795850000, "api_key": SECRETS[0], "hub": {"hfToken": "x" + SECRETS[3]},
        "url": f"https://me:{SECRETS[2]}@example.com/x", "argv": ["--key", SECRETS[4]], "note": f"uses {SECRETS[1]}",
        "options": {"model": "a/model", "steps": n, "learning-rate": rate, "max_tokens": 77, "tokenizer": "dir/x"}}))
    write(folder, "samples.jsonl", ({"step": i, "prompt": prompt, "text": f"answer {i}"}
                                    for i in range(0, n + 1, 5) for prompt in ("Hi", "Bye")))
    return folder


def report_of(*runs, out=None):
    """Write a report; the parsed page and its text."""
    got = tnk("report", *runs, *(["-o", out] if out else []))
    check(got.returncode == 0, f"a report of {len(runs)} runs", got)
    text = (out or runs[0] / "report.html").read_text()
    return Page(text), text


def all_sections(run):
    page, text = report_of(run)
    check(page.titles() == SECTIONS, "all sections", page.titles())
    missing = [word for word in (
        "a/model", "finished", "2.02 <small", "tinker://run:train:0/weights/save-2", "sampler_weights/save-4",
        "2026-12-05", "50.0 s", "2 min 30 s", "answer 100", "2 processes", "Failed saves: 1",
        "the first at step 7", "1.00 <small", "4 min") if word not in text]
    check(not missing, "its contents", missing)
    check("weights/save-1<" not in text, "a deleted state is not shown")
    check("options.max_tokens" in text and ">77<" in text and "dir/x" in text and text.count("(hidden)") == 5 and
          not any(secret in text for secret in SECRETS), "no secrets", re.findall(r"<tr>.*hidden.*", text))
    script = re.search(r"<script>(.*?)</script>", text, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    check(f"script-src 'sha256-{digest}'" in text, f"the policy permits the script, whose digest is {digest}")
    check(not re.search(r"(?:src|href)=(?!\"data:,\")|url\(|@import|fetch|XMLHttp", text),
          "nothing is loaded")
    check(tnk("report", run, "-o", "-").stdout.split("<footer>")[0] == text.split("<footer>")[0], "on standard output")
    said = json.loads(tnk("report", run, "--json").stdout)
    check(said["report"] == str(run / "report.html"), "its path as JSON", said)


def only_what_there_is(top):
    write(top / "few", "metrics.jsonl", [{"step": 1, "loss": 1.5}])
    page, text = report_of(top / "few")
    check(page.titles() == ["Loss"] and "not finished" in text and "refresh" not in text, "only the loss", page.titles())
    write(top / "none", "metrics.jsonl", [])
    page, _ = report_of(top / "none")
    check(page.titles() == [], "a run that has begun", page.titles())
    for name in ("checkpoints.jsonl", "config.json", "samples.jsonl"):
        (top / "few" / name).write_text("[nonsense\n")
    page, text = report_of(top / "few")
    check(page.titles() == ["Loss", "Notices"] and text.count("cannot be read") == 3, "files that are broken", text)


def two_runs(top, run):
    other = run_of(top / "second", 40, 0.02)
    page, text = report_of(run, other, out=top / "both.html")
    check(page.titles() == SECTIONS, "all sections of two runs", page.titles())
    rows = re.findall(r"<tr class=\"differs\"><th scope=\"row\">(.*?)</th>", text)
    check(rows == ["options.steps", "options.learning-rate"], "the settings that differ", rows)
    check(text.count("first: train/loss") == text.count("second: eval/loss") == 1 and
          text.count("c1 dashed") > 0, "the curves of both", text)
    check("<td><pre>answer 40</pre></td><td><pre>answer 40</pre></td>" in text and
          "<td><pre>answer 100</pre></td><td></td>" in text, "samples side by side")


def hostile(top):
    """Strings from files never become elements, attributes or controls."""
    run = top / "evil" / EVIL.replace("/", "|")
    write(run, "metrics.jsonl", [{"step": i, "loss": 1, "eval/loss" + EVIL: 1, EVIL: i, "time/" + EVIL: 1,
                                  "reward/" + EVIL: None if i == 2 else 1} for i in range(1, 4)])
    write(run, "checkpoints.jsonl", [{"name": EVIL, "state_path": EVIL, "sampler_path": EVIL, "batch": 1}])
    write(run, "samples.jsonl", [{"step": 1, "prompt": EVIL, "text": "</pre>" + EVIL + "</script>"}])
    (run / "config.json").write_text(json.dumps({EVIL: EVIL, "options": {"model": EVIL, "steps": EVIL}}))
    for runs in ((run,), (run, run)):
        page, text = report_of(*runs, out=top / "evil.html")
        check(page.tags.count("script") == 1 and "img" not in page.tags and
              not any(name.startswith("on") for _, name, _ in page.attributes), "no elements from files", page.tags)
        check("\033" not in text and "\u202e" not in text and text.count("&lt;script&gt;") > 10, "all is escaped")
    (run / "metrics.jsonl").write_bytes(b'{"step":1,"loss":1}\n{"step":2,"lo\xff":1}\n')
    page, text = report_of(run, out=top / "evil.html")
    check("cannot be read: 1 of 2" in text, "invalid UTF-8")
    write(top / "huge", "metrics.jsonl", [{"step": i, "loss": -1.7e308 * (-1) ** i, "time/a": -1e308, "time/b": 1,
                                           "time/c": 1e308} for i in range(3)])
    _, text = report_of(top / "huge")
    check(not re.search(r"\b(?:nan|inf)\b", text.split("</style>")[1]), "the largest numbers")
    return top / "evil.html"


def huge(top):
    """100,000 steps of ten metrics: small, and the peak of a step is in the picture."""
    with open(top / "metrics.jsonl", "w") as out:
        for i in range(100000):
            values = ",".join(f'"m{k}/loss":{math.sin(i * (k + 1)):.6f}' for k in range(9))
            out.write(f'{{"step":{i},"train/loss":{100 if i == 54321 else 1},{values}}}\n')
    _, text = report_of(top / "metrics.jsonl", out=top / "huge.html")
    curve = re.search(r'class="curve[^"]*" d="M([^"]*)"', text)[1]
    points = [tuple(map(int, point.split(" "))) for point in curve.split("L")]
    check(len(text) < 1 << 20, "100,000 steps of ten metrics are less than a megabyte", len(text))
    low = min(y for _, y in points)
    check([x for x, y in points if y == low] == [5432] and low < 1000, "a peak of one step", low)
    return top / "huge.html"


@contextlib.contextmanager
def following(run, out):
    """tnk report --follow, which is killed if a check fails."""
    with subprocess.Popen([TNK, "report", run, "--follow", "-o", out], env=CLEAN, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(path, word):
    """The file when it has a word; "" if it does not get it."""
    for _ in range(3000):
        if path.exists() and word in (text := path.read_text()):
            return text
        time.sleep(0.01)
    return ""


def followed(top):
    """--follow: the file is always whole, and the command ends with the run."""
    run, out = top / "live", top / "live.html"
    write(run, "metrics.jsonl", [{"step": 1, "loss": 3}])
    with following(run, out) as process:
        text = wait_for(out, "<output>3</output>")
        check(text.endswith("</html>\n") and "http-equiv=\"refresh\"" in text, "the first report", text)
        with open(out) as before:
            with open(run / "metrics.jsonl", "a") as file:
                file.write('{"step":2,"loss":2}\n{"step":3,"lo')
            check(wait_for(out, "<output>2</output>").endswith("</html>\n"), "the next one")
            check(before.read() == text, "a reader of the first one still has all of it")
        write(run, "checkpoints.jsonl", [saved(1, 2, final=True)])
        process.wait(60)
        text = out.read_text()
        check(process.returncode == 0 and "finished" in text and "refresh" not in text, "the last one", text)
    check([p.name for p in top.glob("live.html*")] == ["live.html"], "no other file is left")
    changed_meanwhile(top)
    with following(top / "few", out) as process:
        wait_for(out, "1.5")
        process.send_signal(signal.SIGINT)
        process.wait(60)
    check(process.returncode in (130, -signal.SIGINT) and out.read_text().endswith("</html>\n"), "Ctrl-C")


def changed_meanwhile(top):
    """--follow finds a change of a file that it has read, while it reads another one."""
    run, out = top / "meanwhile", top / "meanwhile.html"
    write(run, "metrics.jsonl", [{"step": 1, "loss": 3}])
    os.mkfifo(run / "samples.jsonl")
    with following(run, out) as process:
        with open(run / "samples.jsonl", "w"):
            write(run, "checkpoints.jsonl", [saved(1, 2, final=True)])
        check("refresh" in wait_for(out, "<output>3</output>"), "the report without the change")
        pipe = None
        for _ in range(3000):
            try:
                pipe = os.open(run / "samples.jsonl", os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError:
                time.sleep(0.01)
        check(pipe is not None, "the files are read again")
        if pipe is not None:
            os.close(pipe)
            process.wait(60)
            check("refresh" not in out.read_text(), "the report has the change")


def tensorboard(top, run):
    check(crc32c(b"123456789") == 0xe3069283, "the checksum of the reader")
    got = tnk("report", run, top / "second", "--tensorboard", top / "board")
    check(got.returncode == 0, "event files of two runs", got)
    events = events_of(top / "board/first/events.out.tfevents.0.tnk")
    steps = [event[1] for event in events]
    lines = [json.loads(row) for row in (run / "metrics.jsonl").read_text().splitlines()]
    check(events[0][2] == b"brain.Event:2" and steps == [0, *range(1, 101)], "an event for each step", steps)
    check(all(set(event[3]) == set(row) - {"step"} and
              all(math.isclose(event[3][key], row[key], rel_tol=1e-6) for key in event[3] if row[key] is not None)
              for event, row in zip(events[1:], lines)), "all values")
    check(math.isnan(events[7][3]["grad_norm"]), "a value that is not finite")
    times = [event[0] for event in events]
    check(times == sorted(times) and abs(times[1] - 1795850002.4) < 0.01 and times[25] == 1795850060 and times[100] == 1795850240,
          "times between the checkpoints", times)
    check(len(events_of(top / "board/second/events.out.tfevents.0.tnk")) == 41, "the second run")
    write(top / "back", "metrics.jsonl", [{"step": i, "loss": i} for i in (*range(8), *range(4, 6))])
    for _ in range(2):
        got = tnk("report", top / "back", "--tensorboard", top / "board2", "--json")
        check(json.loads(got.stdout) == {"tensorboard": str(top / "board2")}, "its path as JSON", got)
    check([p.name for p in (top / "board2").iterdir()] == ["events.out.tfevents.0.tnk"], "it is replaced")
    events = events_of(top / "board2/events.out.tfevents.0.tnk")
    check([(event[1], event[4]) for event in events if event[4]] == [(4, b"\x08\x01")] and
          [event[1] for event in events] == [0, *range(8), 4, 4, 5], "a mark where a run was resumed", events)
    write(top / "late", "metrics.jsonl", [{"step": 1, "loss": 3}, {"step": 2, "loss": 2}, {"step": 1, "eval/loss": 3}])
    tnk("report", top / "late", "--tensorboard", top / "board4")
    events = events_of(top / "board4/events.out.tfevents.0.tnk")
    check([(event[1], event[4]) for event in events] == [(0, None), (1, None), (2, None), (1, None)],
          "a late evaluation is no restart", events)
    tnk("report", run, run, "--tensorboard", top / "board3")
    check(sorted(p.name for p in (top / "board3").iterdir()) == ["first", "first-2"], "two runs of the same name")
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        skip("TensorBoard reads the files", "the package tensorboard is not installed")
        return
    board = EventAccumulator(str(top / "board2"))
    board.Reload()
    check([(s.step, s.value) for s in board.Scalars("loss")] == [(i, i) for i in range(6)],
          "TensorBoard reads the files", board.Scalars("loss"))


# The tables of trackio 0.43 when another program has written to the project.
OTHER = """CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL,
  run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL, log_id TEXT, space_id TEXT);
CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, run_name TEXT NOT NULL,
  config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_id));
INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES ('x', '2026-11-29T00:00:00', 'other', 7, '{}');"""


def trackio(top, run):
    project = top / "mine.db"
    got = tnk("report", run, "--trackio", project)
    if "built without SQLite" in got.stderr:
        check(got.returncode == 2 and not project.exists(), "refused without SQLite", got)
        skip("projects of trackio", "this tnk was built without SQLite")
        return
    check(got.returncode == 0 and str(project) in got.stderr, "a new project", got)
    lines = [json.loads(row) for row in (run / "metrics.jsonl").read_text().splitlines()]
    steps, metrics, times = of_run(project, "first")
    check(steps == [*range(1, 101)], "a row for each step", steps)
    check(all(got == {key: "NaN" if value is None else value for key, value in line.items()
                      if key != "step" and (value is None or isinstance(value, (int, float)))}
              for got, line in zip(metrics, lines)), "all values", metrics[:2])
    check(times == sorted(times) and abs(times[0] - 1795850002.4) < 0.01 and times[99] == 1795850240,
          "times between the checkpoints", times)
    config = json.loads(rows_of(project, "SELECT config FROM configs")[0][0])
    page = json.loads((run / "config.json").read_text())
    check(set(page) & set(config) and "_Created" in config, "the configuration", config)
    stored = project.read_bytes()
    check(b"(hidden)" in stored and not any(secret.encode() in stored for secret in SECRETS), "no secrets in a project")

    # Again, with a second run, beside a run of another program.
    project.unlink()
    with contextlib.closing(sqlite3.connect(project)) as db:
        db.executescript(OTHER)
    for _ in range(2):
        got = tnk("report", run, top / "second", "--trackio", project, "--json")
        check(json.loads(got.stdout) == {"trackio": str(project)}, "its path as JSON", got)
    check([len(of_run(project, name)[0]) for name in ("first", "second", "other")] == [100, 41 - 1, 1],
          "runs are replaced, others stay", rows_of(project, "SELECT run_name, count(*) FROM metrics GROUP BY 1"))

    os.environ["TRACKIO_DIR"] = str(top)
    try:
        from trackio.sqlite_storage import SQLiteStorage
    except ImportError:
        skip("trackio reads a project", "the package trackio is not installed")
    else:
        check(sorted(SQLiteStorage.get_runs("mine")) == ["first", "other", "second"], "trackio finds the runs")
        check([row["step"] for row in SQLiteStorage.get_logs("mine", "first")] == steps,
              "trackio reads the metrics", SQLiteStorage.get_logs("mine", "first")[:2])

    # Steps that are repeated replace the earlier ones; a late evaluation does not.
    for name, wanted in (("back", [0, 1, 2, 3, 4, 5]), ("late", [1, 2, 1])):
        tnk("report", top / name, "--trackio", top / "more.db")
        check(of_run(top / "more.db", name)[0] == wanted, f"steps of {name}", of_run(top / "more.db", name))

    (top / "no.db").write_text("no database " * 100)
    old = top / "old.db"
    with contextlib.closing(sqlite3.connect(old)) as db:
        db.execute("CREATE TABLE metrics (id INTEGER, run_name TEXT)")
    before = old.read_bytes()
    for path, words in ((top / "no.db", "not a database"), (top / "no/where.db", "unable to open"),
                        (old, "no column named")):
        got = tnk("report", run, "--trackio", path)
        check(got.returncode == 6 and f"{path.name}: " in got.stderr and words in got.stderr, f"refused: {words}", got)
    check(old.read_bytes() == before, "a project that is refused is not changed")


def refused(top, run):
    for args, status, words in (
            ([top], 6, "no metrics.jsonl"), ([run, top / "nowhere"], 6, "No such file"),
            ([run, "-o", top / "no" / "where"], 6, "No such file"), ([run, run, run], 2, ""),
            ([run, "--tensorboard", "x", "--exit-with-stdin"], 2, "--follow"),
            ([run, "--trackio", "x", "-o", "y"], 2, "--output"), ([run, "--trackio", "x", "--tensorboard", "y"], 2, "--tensorboard"),
            ([run, "--tensorboard", run / "config.json"], 6, "config.json"),
            ([run, "-o", "-", "--follow"], 2, "--follow"), ([run, "-o", "-", "--json"], 2, "--json")):
        got = tnk("report", *args)
        check(got.returncode == status and words in got.stderr, f"refused: {words}", got)
    with open("/dev/full", "w") as full:
        got = subprocess.run([TNK, "report", run, "-o", "-"], env=CLEAN, stdout=full, stderr=subprocess.PIPE)
    check(got.returncode == 6, "a full disk", got)


def opened(pages):
    """No request, no message, no overflow, and values at the pointer."""
    if browser.find() is None:
        skip("the reports in a browser", "chromium is not installed")
        return
    with browser.Browser() as chromium:
        for page in pages:
            for width in (400, 1400):
                for scheme in ("light", "dark"):
                    chromium.requests.clear()
                    chromium.open(page.as_uri(), width=width, scheme=scheme)
                    wide = chromium.run("document.documentElement.scrollWidth")
                    check(chromium.requests == [page.as_uri()] and chromium.messages == [],
                          f"{page.name}, {width} {scheme}: no request and no message",
                          (chromium.requests, chromium.messages))
                    check(wide <= width, f"{page.name} is {width} wide", wide)
                    color = chromium.run("getComputedStyle(document.body).backgroundColor")
                    light = int(re.search(r"\d+", color)[0]) > 128
                    check(light == (scheme == "light"), f"{scheme} mode", color)
        chromium.open(pages[0].as_uri())
        box = chromium.run("(b => [b.x, b.y, b.width, b.height])"
                           "(document.querySelector('.plot').getBoundingClientRect())")
        chromium("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] - 1, y=box[1] + box[3] / 2)
        said = chromium.run("[...document.querySelector('figure').querySelectorAll('output, .step')]"
                            ".map(e => e.textContent)")
        check(said == ["2.02", "2.51", "step 100"], "the values at the pointer", said)


with tempfile.TemporaryDirectory() as tmp:
    where = pathlib.Path(tmp)
    first = run_of(where / "first")
    all_sections(first)
    only_what_there_is(where)
    two_runs(where, first)
    evil = hostile(where)
    big = huge(where)
    followed(where)
    tensorboard(where, first)
    trackio(where, first)
    refused(where / "evil", first)
    opened([first / "report.html", where / "both.html", evil, big])
plan()
