#!/usr/bin/env python3
"""Run bench_tokenizer and the reference on the same texts, one core each.

usage: bench.py BENCH_TOKENIZER LIBRARY CACHE_DIR

English and code come from Python's own library, Chinese and Japanese from
Debian's manual pages, Korean is put together from the vocabulary's tokens.
Prints a table with megabytes a second and their ratio.
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

ROUNDS = 2
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
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    bench, library, folder = map(pathlib.Path, sys.argv[1:4])
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    reference.enter_venv(folder)
    from tokenizers import Tokenizer
    texts = dict(python_texts())
    texts["Chinese"] = manual_pages(folder, "zh_CN", "manpages-zh")
    texts["Japanese"] = manual_pages(folder, "ja", "manpages-ja")
    print("| vocabulary | text | reference | tnk | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for name in reference.VOCABULARIES:
        path = reference.vocabulary(folder, name)
        file = str(path / "tokenizer.json")
        texts["Korean"] = korean(reference.Library(library.resolve()).load(path))
        files = {}
        for kind, text in texts.items():
            files[kind] = folder / f"{kind}.txt"
            files[kind].write_text(text)
        out = subprocess.run([bench, file, *files.values()], check=True,
                             capture_output=True, text=True).stdout.splitlines()
        load = best(lambda: Tokenizer.from_file(file)) * 1e3
        ours = float(out[0].split()[1])
        print(f"| {name} | load | {load:.0f} ms | {ours:.0f} ms "
              f"| {load / ours:.1f} |")
        theirs = Tokenizer.from_file(file)
        for (kind, path), line in zip(files.items(), out[1:]):
            data = path.read_bytes()
            parts = list(portions(data))
            speed = len(data) / 1e6 / best(lambda: [
                theirs.encode(p, add_special_tokens=False) for p in parts])
            ours = float(re.search(r"encode ([\d.]+)", line)[1])
            print(f"| {name} | {kind} | {speed:.2f} MB/s | {ours:.1f} MB/s "
                  f"| {ours / speed:.0f} |", flush=True)
        print(f"{name}: {out[0]}", file=sys.stderr)


try:
    main()
except reference.Skip as e:
    print(f"bench: skipped: {e}")
