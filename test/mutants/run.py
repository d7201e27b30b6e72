#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks the library on purpose and looks whether a test notices.

    test/mutants/run.py [--work DIR] [--only NAME,...]      the list in mutants.txt
    test/mutants/run.py --generate N [--seed S]             N breakages by chance

Nothing is changed here: the tree is copied to DIR (a folder of its own under
the temporary directory, unless told), built there, and each mutant is made,
built, tried and taken back. An entry of the list names the programs that must
fail; "equivalent" says why none can. The exit status is 1 if a mutant of the
list survives, if an equivalent one is noticed, or if an entry no longer
applies. Generated mutants are reported as they come out; they fail nothing,
because some of them change nothing that a test could see.

Format of mutants.txt, entries apart by blank lines, # for comments:

    == NAME what is broken, with the row that forbids it
    file: src/lib/policy/limiter.c
    tests: flow_limiter task_throttle       or   equivalent: REASON
    tests: cli/cli_errors                   a test of Meson, by suite and name
    tests: task_loss:twice                  the cases whose name has `twice`
    -the line or lines as they are
    +what stands there instead

Only lines' ends are trimmed; the old text must occur exactly once. Where two
guards do the same, one breakage shows nothing: another line `file:` begins a
second edit, and an entry breaks all that it names.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
LIMIT_S = 600  # a mutant that never ends is noticed as well


class Mutant:
    def __init__(self, name, title):
        self.name, self.title = name, title
        self.edits, self.tests, self.reason = [], [], None


def read_list(text):
    mutants = []
    for n, line in enumerate(text.splitlines(), 1):
        line = line.rstrip()
        if line.startswith("== "):
            name, _, title = line[3:].partition(" ")
            mutants.append(Mutant(name, title))
        elif not line or line.startswith("#"):
            continue
        elif not mutants:
            sys.exit(f"mutants.txt:{n}: no entry has begun")
        elif line.startswith("file: "):
            mutants[-1].edits.append((line[6:], [], []))
        elif line.startswith("tests: "):
            mutants[-1].tests += line[7:].split()
        elif line.startswith("equivalent: "):
            mutants[-1].reason = line[12:]
        elif line[0] in "-+" and mutants[-1].edits:
            mutants[-1].edits[-1][1 if line[0] == "-" else 2].append(line[1:])
        else:
            sys.exit(f"mutants.txt:{n}: cannot read: {line}")
    return mutants


def copy_tree(work):
    """What git tracks, as it is in the working tree."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = TOP / name, work / name
        if not source.is_file():
            continue
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def build(work, targets):
    run = subprocess.run(["ninja", "-C", work / "build", *targets],
                         capture_output=True, text=True)
    return run.returncode == 0, run.stdout


def programs(work):
    """Test programs by name: flow_limiter -> test/test_flow_limiter."""
    out = subprocess.run(["ninja", "-C", work / "build", "-t", "targets", "all"],
                         capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^(test/(?:\w+/)?test_(\w+)): ", out, re.M)
    return {name: target for target, name in found}


def meson_tests(work):
    """All tests by suite and name, such as cli/cli_errors."""
    out = subprocess.run(["meson", "introspect", "--tests", work / "build"],
                         capture_output=True, text=True, check=True).stdout
    return {f"{suite.partition(':')[2]}/{test['name']}": f"{suite.partition(':')[2]}/{test['name']}"
            for test in json.loads(out) for suite in test["suite"]}


def find_target(known, test):
    """The target of a test of the list, with the part of cases' names; None
    where there is none."""
    name, _, part = test.partition(":")
    return (known[name], part) if name in known else None


def try_program(work, target, part):
    """The names of the cases that fail; None: the program passes."""
    command = [work / "build" / target, *filter(None, [part])]
    if not target.startswith("test/"):
        suite, name = target.split("/")
        command = ["meson", "test", "-C", work / "build", "--no-rebuild", "--suite", suite, name]
    try:
        run = subprocess.run(command, capture_output=True,
                             text=True, errors="replace", timeout=LIMIT_S,
                             stdin=subprocess.DEVNULL, cwd=work / "build")
    except subprocess.TimeoutExpired:
        return ["(time limit)"]
    if run.returncode == 0:
        return None
    return re.findall(r"^not ok \d+ - (\S+)", run.stdout, re.M) or ["(died)"]


def apply(path, old, new):
    """The text before, or None where `old` does not occur exactly once."""
    text = path.read_text()
    lines = [line.rstrip() for line in text.split("\n")]
    places = [i for i in range(len(lines) - len(old) + 1)
              if [s.strip() for s in lines[i:i + len(old)]] == [s.strip() for s in old]]
    if not old or len(places) != 1:
        return None
    lines[places[0]:places[0] + len(old)] = new
    path.write_text("\n".join(lines))
    return text


def break_all(work, mutant):
    """[(path, text before)], or None where an edit does not apply, which
    changes nothing."""
    done = []
    for name, old, new in mutant.edits:
        path = work / name
        before = apply(path, old, new) if path.is_file() else None
        if before is None:
            mend_all(done)
            return None
        done.append((path, before))
    return done or None


def mend_all(done):
    for path, before in reversed(done):
        path.write_text(before)


def notice(work, targets, is_one_enough=False):
    """What notices the mutant that is in the tree: [(program, cases)]. When one
    is enough, no further program is begun once it has been found."""
    if not targets: # of an equivalent one: Ninja would build everything
        return []
    # What a test of Meson needs is not known here, so all of it is built.
    is_all = any(not target.startswith("test/") for _, (target, _) in targets)
    ok, out = build(work, [] if is_all else [target for _, (target, _) in targets])
    if not ok:
        return [("compiler", re.findall(r"error: (.*)", out)[:1])]
    is_noticed = threading.Event()

    def attempt(target):
        if is_one_enough and is_noticed.is_set():
            return target[0], None
        cases = try_program(work, *target[1])
        if cases:
            is_noticed.set()
        return target[0], cases

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [(name, cases) for name, cases in pool.map(attempt, targets)
                if cases]


def run_list(work, only):
    known = {**programs(work), **meson_tests(work)}
    mutants = read_list((HERE / "mutants.txt").read_text())
    if only:
        mutants = [m for m in mutants if m.name in only]
    # Unbroken, everything the list names has to pass; else it would prove nothing.
    named = sorted({t for m in mutants for t in m.tests if find_target(known, t)})
    failing = notice(work, [(t, find_target(known, t)) for t in named])
    if failing:
        sys.exit(f"fails without a mutant: {' '.join(name for name, _ in failing)}")
    killed = survived = wrong = same = 0
    for m in mutants:
        missing = [t for t in m.tests if find_target(known, t) is None]
        done = break_all(work, m)
        if missing or done is None or not (m.tests or m.reason):
            why = f"no program {missing[0]}" if missing else "does not apply"
            print(f"{m.name}: WRONG ENTRY, {why}: {m.title}", flush=True)
            mend_all(done or [])
            wrong += 1
            continue
        found = notice(work, [(t, find_target(known, t)) for t in m.tests])
        mend_all(done)
        # Survivors by the letter of the list: every named program must fail.
        quiet = sorted(set(m.tests) - {name for name, _ in found})
        if m.reason:
            same += 1
            print(f"{m.name}: changes nothing ({m.reason}): {m.title}", flush=True)
        elif found and (found[0][0] == "compiler" or quiet):
            survived += 1
            who = "it does not compile" if found[0][0] == "compiler" else f"unnoticed by {' '.join(quiet)}"
            print(f"{m.name}: SURVIVED, {who}: {m.title}", flush=True)
        elif found:
            killed += 1
            print(f"{m.name}: killed by {found[0][0]} ({', '.join(found[0][1][:2])}): {m.title}", flush=True)
        else:
            survived += 1
            print(f"{m.name}: SURVIVED: {m.title}", flush=True)
    print(f"{killed} killed, {survived} survived, {same} change nothing, {wrong} wrong entries")
    return 1 if survived or wrong else 0


# One small slip each: what a tired person might type.
SLIPS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ 1\b", ""), (r" - 1\b", ""), (r" \+ ", " - "), (r" - ", " + "),
    (r"\+\+;", "--;"), (r"--;", "++;"), (r"\b1000\b", "999"),
    (r"= 1;", "= 0;"), (r"= 0;", "= 1;"), (r"\breturn 1;", "return 0;"),
    (r"\breturn 0;", "return 1;"), (r"if \((\w[^()]*)\)$", r"if (!(\1))"),
]
# Folders of src/lib, and the folder of test that has their tests.
ROOMS = {"base": "base", "wire": "codec", "rl": "codec", "observe": "codec", "policy": "flow", "usage": "flow",
         "io/loop": "loop", "io/net": "net", "io/http": "http", "client": "task", "hosted": "task", "store": "task",
         "files/age": "codec", "files/tar": "codec", "files/fetch": "hub", "files/hub": "hub", "files/push": "hub",
         "files/weights": "weights", "ledger": "ledger", "api": "api"}
# Rooms by what files of other rooms are named after.
TOPICS = {"hub": "hub", "push": "hub", "ledger": "ledger", "tally": "ledger",
          "weights": "weights"}


def slips(path):
    """(line number, new line) of every slip that can be made in a file."""
    found = []
    for n, line in enumerate(path.read_text().split("\n")):
        bare = line.strip()
        if bare.startswith(("*", "/*", "//", "#", '"')) or "_Static_assert" in bare:
            continue
        for old, new in SLIPS:
            for m in re.finditer(old, line):
                if line.count('"', 0, m.start()) % 2 == 0:
                    found.append((n, line[:m.start()] + m.expand(new) + line[m.end():]))
    return found


def run_generated(work, n, seed):
    known = programs(work)
    chance = random.Random(seed)
    files = [p for room in ROOMS for p in sorted((work / "src/lib" / room).rglob("*.c"))]
    everything = [(p, s) for p in files for s in slips(p)]
    killed = compiled = 0
    for path, (line, text) in chance.sample(everything, min(n, len(everything))):
        place = path.relative_to(work / "src/lib").as_posix()
        room = next(test for folder, test in ROOMS.items() if place.startswith(folder + "/"))
        before = path.read_text()
        lines = before.split("\n")
        was, lines[line] = lines[line].strip(), text
        path.write_text("\n".join(lines))
        # What is close by first; then the tests of whole operations, and those
        # of what the file is named after.
        others = {"ledger"} if room == "task" else {"task"}
        others.add(TOPICS.get(path.stem.split("_")[0], room))
        found = None
        for rooms in ({room}, others - {room}):
            near = [(k, (t, "")) for k, t in known.items() if k.split("_")[0] in rooms]
            found = found or notice(work, near, is_one_enough=True)
        path.write_text(before)
        # What fails without the mutant as well has not noticed it.
        if found and found[0][0] != "compiler":
            unsteady = {name for name, _ in notice(work, [(name, (known[name], "")) for name, _ in found])}
            found = [(name, cases) for name, cases in found if name not in unsteady]
        if found and found[0][0] == "compiler":
            print(f"{place}:{line + 1}: refused by the compiler: {was}", flush=True)
            continue
        compiled += 1
        killed += bool(found)
        verdict = f"killed by {found[0][0]}" if found else "SURVIVED"
        print(f"{place}:{line + 1}: {verdict}: {was} -> {text.strip()}", flush=True)
    print(f"{killed} of {compiled} generated mutants killed, seed {seed}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--generate", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    work = (args.work or pathlib.Path(tempfile.gettempdir()) / "tnk-mutants").resolve()
    work.mkdir(parents=True, exist_ok=True)
    copy_tree(work)
    if not (work / "build" / "build.ninja").is_file():
        subprocess.run(["meson", "setup", work / "build", work, "-Dtests=true",
                        "-Doptimization=0", "-Dexamples=false"], check=True,
                       stdout=subprocess.DEVNULL)
    ok, out = build(work, [])
    if not ok:
        print(out[-3000:])
        sys.exit("the tree does not build as it is")
    if args.generate:
        return run_generated(work, args.generate, args.seed)
    return run_list(work, set(filter(None, args.only.split(","))))


if __name__ == "__main__":
    sys.exit(main())
