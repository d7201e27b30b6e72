#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the interpreter of chat templates with Jinja2.

usage: reference.py TOOL CACHE_DIR [--conversations N] [--templates N] [--seed N]

N conversations for each chat template that a package of PyPI carries, and N
templates that are put together from all that the language has: the text must be
the same, or both must refuse. All of it: --conversations 300 --templates 20000.
Ends with a skip and its reason when the registry is out of reach.
"""
import argparse
import hashlib
import pathlib
import random
import re
import subprocess
import sys
import tarfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import own_venv  # noqa: E402

PACKAGES = ["Jinja2==3.1.6", "MarkupSafe==3.0.3"]
SOURCE = "llama-cpp-python==0.3.36"
DIGEST = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
# What is narrower here on purpose, and refused in these words.
NARROWER = re.compile(r"(line \d+: )?(" + "|".join((
    r"a [\w ]+ has no text",
    r"a( whole)? number has more than 64 bits",
    r"the power is no real number",
    r'a format is not known for ".*"',
    r"a conversion is not known",
    r"a format of the time is not known",
    r"whether two texts or numbers are one object is not known",
    r'there is no attribute ".*" of ".*" here',
    r'"\w+" takes no argument ".*" here',
    r'"groupby" takes no default here',
    r"a whole number has no precision here",
    r"a format cannot ask for items by number here",
    r"bases are 2 to 36 here",
    r"numbers are rounded to 0 to 100 places here",
    r"\\N and surrogates are not known here",
)) + r')(, in message \d+)?(, member "[^"]*")?', re.DOTALL)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*args):
    try:
        done = subprocess.run(args, capture_output=True, text=True,
                              timeout=900)
    except (OSError, subprocess.SubprocessError) as e:
        skip(str(e))
    if done.returncode != 0:
        skip(f"{args[0]}: {(done.stderr or done.stdout).strip()[-200:]}")


def chat_templates(folder):
    """Name and text of each template of the package."""
    kept = folder / "templates"
    if not kept.is_dir():
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps",
            "--no-binary", ":all:", "-d", str(folder), SOURCE)
        packed = next(folder.glob("llama_cpp_python-*.tar.gz"))
        got = hashlib.sha256(packed.read_bytes()).hexdigest()
        if got != DIGEST:
            raise SystemExit(f"{packed.name} is not the pinned one: {got}")
        texts = {}
        with tarfile.open(packed) as tar:
            for member in tar:
                if member.name.endswith(".jinja"):
                    name = pathlib.PurePosixPath(member.name).name
                    texts[name] = tar.extractfile(member).read()
        kept.mkdir()
        for name, text in texts.items():
            (kept / name).write_bytes(text)
        packed.unlink()
    return [(path.name, path.read_text())
            for path in sorted(kept.glob("*.jinja"))]


class Comparison:
    def __init__(self, tool):
        import environment
        self.reference = environment.Reference()
        self.tool = environment.Tool(tool)
        self.n = self.n_texts = self.n_narrower = self.n_different = 0

    def check(self, name, text, variables):
        wanted, error = self.reference.render(text, variables)
        got, why = self.tool.render(text, variables)
        self.n += 1
        self.n_texts += wanted is not None
        if wanted == got:
            return
        if got is None and NARROWER.fullmatch(why):
            self.n_narrower += 1
            return
        self.n_different += 1
        if self.n_different <= 10:
            print(f"{name}: {text[:400]!r}\n  wanted {wanted!r:.400} {error}\n"
                  f"  got    {got!r:.400} {why}")

    def tell(self, what):
        print(f"{what}: {self.n} cases, {self.n_texts} of them with a text, "
              f"{self.n_narrower} refused on purpose, {self.n_different} "
              "different")
        return self.n_different


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--conversations", type=int, default=15)
    parser.add_argument("--templates", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.cache = args.cache.resolve()
    args.cache.mkdir(parents=True, exist_ok=True)
    try:
        own_venv.enter(args.cache / "venv", *PACKAGES)
    except own_venv.Unreachable as e:
        skip(str(e))
    import conversations
    import expressions

    different = 0
    made = Comparison(args.tool)
    rng = random.Random(args.seed)
    for _ in range(args.templates):
        made.check("made", expressions.template(rng), expressions.VARIABLES)
    different += made.tell("templates put together")
    given = Comparison(args.tool)
    templates = chat_templates(args.cache)
    for name, text in templates:
        rng = random.Random(f"{name} {args.seed}")
        for _ in range(args.conversations):
            given.check(name, text, conversations.conversation(rng))
    different += given.tell(f"{len(templates)} chat templates")
    return 1 if different or len(templates) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
