#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run bench_tokenizer and the reference on the same texts, one core each.

usage: bench.py BUILD_DIR CACHE_DIR      (a build with -Dbench=true)

English and code come from Python's own library, Chinese and Japanese from
Debian's manual pages, Korean is put together from the vocabulary's tokens.
Prints a table with megabytes a CPU-second and their ratio; ours runs before and
after the reference, and the best counts on both sides.
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import sysconfig
import time

import reference

ROUNDS = 3
BENCH = None
PORTION = 4096


def python_texts():
    lib = pathlib.Path(sysconfig.get_path("stdlib"))
    english = (lib / "pydoc_data/topics.py").read_text()
    code = "".join(p.read_text(errors="replace") for p in sorted(lib.glob("*.py")))
    # The topics are string literals: take escapes and quotes off.
    yield "English", re.sub(r"\\n|'\n\s*'", "\n", english)[:2000000]
    yield "code", code[:2000000]


def manual_pages(folder, language, package):
    if not (folder / package).is_dir():
        try:
            reference.run("apt-get", "download", package, cwd=folder)
            deb, = folder.glob(f"{package}_*.deb")
            reference.run("dpkg-deb", "-x", str(deb), str(folder / package))
        except (OSError, reference.Skip) as e:
            print(f"{package}: {e}", file=sys.stderr)
            return ""
    lines = []
    for path in sorted((folder / package).rglob("*.gz")):
        if f"/{language}" not in str(path):
            continue
        text = subprocess.run(["zcat", path], capture_output=True).stdout
        for line in text.decode(errors="ignore").splitlines():
            line = re.sub(r"\\f.|^\.\w+ ?", "", line)
            if sum(ord(c) > 0x2fff for c in line) * 2 > len(line):
                lines.append(line)
    return "\n".join(lines)[:700000]


def korean(ours):
    rng = random.Random(1)
    tokens = [t for i in range(120000) if (t := ours.decode([i])) and
              all("가" <= c <= "힣" for c in t.strip()) and t.strip()]
    return "".join(rng.choice(tokens) + ("\n" if i % 40 == 0 else "")
                   for i in range(150000))


def portions(data):
    at = 0
    while at < len(data):
        end = data.find(b"\n", at + PORTION) + 1
        if end == 0 or at + PORTION >= len(data):
            end = len(data)
        yield data[at:end].decode()
        at = end


def best(function):
    """CPU time of the fastest round."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


class Ours:
    """The best of what several runs of bench_tokenizer say."""

    def __init__(self, command):
        self.command, self.load, self.memory, self.texts = command, 1e9, "", {}

    def run(self):
        out = subprocess.run(self.command, check=True, capture_output=True,
                             text=True).stdout.splitlines()
        self.load = min(self.load, float(out[0].split()[1]))
        self.memory = re.search(r"holds.*", out[0])[0]
        for path, line in zip(self.command[2:], out[1:]):
            speeds = self.texts.setdefault(path, {})
            for kind, speed in re.findall(r"(\w+) ([\d.]+) MB/s", line):
                speeds[kind] = max(speeds.get(kind, 0), float(speed))


def rows(bench, name, file, files):
    from tokenizers import Tokenizer
    ours = Ours([bench, file, *files.values()])
    ours.run()
    load = best(lambda: Tokenizer.from_file(file)) * 1e3
    theirs = Tokenizer.from_file(file)
    speeds = {}
    for kind, path in files.items():
        parts = list(portions(path.read_bytes()))
        speeds[kind] = path.stat().st_size / 1e6 / best(lambda: [
            theirs.encode(p, add_special_tokens=False) for p in parts])
    ours.run()
    yield [name, "load", f"{load:.0f} ms", f"{ours.load:.0f} ms",
           f"{load / ours.load:.1f}", "", "", "", ours.memory]
    for kind, speed in speeds.items():
        own = ours.texts[files[kind]]
        yield [name, kind, f"{speed:.2f}", f"{own['encode']:.1f}",
               f"{own['encode'] / speed:.0f}", *(f"{own[k]:.1f}" for k in (
                   "count", "decode", "batch")), ""]


def main():
    build, folder = map(pathlib.Path, sys.argv[1:3])
    bench = build / "bench/bench_tokenizer"
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    reference.enter_venv(folder)
    library = reference.Library(
        (build / "src/tokenizers/libtnk-tokenizers.so").resolve())
    texts = dict(python_texts())
    texts["Chinese"] = manual_pages(folder, "zh_CN", "manpages-zh")
    texts["Japanese"] = manual_pages(folder, "ja", "manpages-ja")
    print(time.strftime("%Y-%m-%d"), "load", os.getloadavg()[0])
    print("| vocabulary | text | reference | tnk | ratio | count | decode | "
          "batch of 2 | memory |\n|" + " --- |" * 9)
    for name in reference.VOCABULARIES:
        path = reference.vocabulary(folder, name)
        texts["Korean"] = korean(library.load(path))
        files = {}
        for kind, text in texts.items():
            files[kind] = folder / f"{kind}.txt"
            files[kind].write_text(text)
        for row in rows(bench, name, str(path / "tokenizer.json"), files):
            print("|", " | ".join(row), "|", flush=True)


try:
    main()
except reference.Skip as e:
    print(f"bench: skipped: {e}")
