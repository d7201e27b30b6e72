#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Old programs run with a newer library, and newer ones with an old library.

usage: run.py ROOT BUILD_DIR TNK_COMMAND CC...

The newer library is this tree with one member, `grown`, appended to every
struct that begins with its size, as a later version would; its table in
src/lib/base/options.h says so, and begins where it began. Both are shared ones.
caller.c uses each of the structs, once compiled against the headers as they
are and once against those with the new members, and each of the two programs
runs, as it was linked, with each of the two libraries:

    old program, both libraries   every call succeeds
    new program, both libraries   the same, while `grown` is not set
    new program, old library      TNK_ENOTSUP for each `grown` that is set; in a
                                  struct that the library fills it is zeroed
    new program, new library      each `grown` is taken
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
TNK, CC = sys.argv[3], sys.argv[4:]
LISTS = re.compile(r"#define TNK__STRUCTS_(IN|OUT)\(X\)(.*?)\n\n", re.S)
ROW = re.compile(r"(X\((tnk_\w+)(?:,[\s\\]*\w+){3},[\s\\]*)\w+(,[\s\\]*(?:YES|NO)\))")


def run(*args, **more):
    got = subprocess.run([str(a) for a in args], capture_output=True, text=True,
                         **more)
    if got.returncode != 0:
        sys.exit(f"{' '.join(map(str, args))}: {got.returncode}\n"
                 f"{got.stdout}{got.stderr}")
    return got.stdout


def structs():
    """Names of the structs that the library reads, and of those it fills."""
    table = (ROOT / "src/lib/base/options.h").read_text()
    found = {kind: [row[1] for row in ROW.findall(rows)]
             for kind, rows in LISTS.findall(table)}
    return found["IN"], found["OUT"]


def grow(tree, names):
    """Append the member to each struct, and to its row in the table."""
    for path in (tree / "include").rglob("*.h"):
        text = path.read_text()
        for name in names:
            text = text.replace(f"\n}} {name};", f"\n  const void *grown;\n}} {name};")
        path.write_text(text)
    path = tree / "src/lib/base/options.h"
    text, n = ROW.subn(r"\1grown\3", path.read_text())
    if n != len(names):
        sys.exit(f"the table has {len(names)} rows, of which {n} could grow")
    path.write_text(text)


def newer_library(work, names):
    tree = work / "tree"
    for part in ("include", "src", "subprojects", "meson.build",
                 "meson_options.txt"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        tree.mkdir(exist_ok=True)
        copy(ROOT / part, tree / part)
    grow(tree, names)
    options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
    # Where the libraries lie that this build uses.
    same = [f"-D{o['name']}={','.join(o['value'])}" for o in options
            if o["name"] == "library_path" and o["value"]]
    run("meson", "setup", work / "build", tree, "--wrap-mode=nodownload", *same,
        "-Dcli=false", "-Dexamples=false", "-Dtokenizers=enabled",
        "-Ddefault_library=shared", "-Doptimization=0", "-Ddebug=false")
    run("ninja", "-C", work / "build")
    return tree / "include", work / "build"


def compile_caller(work, name, include, *args):
    uv = run("pkg-config", "--cflags", "--libs", "libuv").split()
    run(*CC, "-std=gnu11", "-Wall", "-Werror", "-I", include,
        ROOT / "test/abi/caller.c", "-o", work / name, *args,
        "-L", BUILD / "src", "-L", BUILD / "src/tokenizers",
        "-L", BUILD / "src/chat", "-L", BUILD / "src/gateway",
        "-ltnk-gateway", "-ltnk", "-ltnk-tokenizers", "-ltnk-chat",
        *uv)
    return work / name


class Server:
    def __init__(self, work):
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("TINKER_", "HF_"))}
        self.env["no_proxy"] = "*"
        self.process = subprocess.Popen(
            [TNK, "local", "--port", "0", "--exit-with-stdin", "--data",
             work / "data"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=self.env, text=True)
        self.url = re.search(r"listening on (\S+)",
                             self.process.stdout.readline())[1]

    def run(self, program, build, folder):
        env = {**self.env, "LD_LIBRARY_PATH":
               ":".join(str(build / place) for place in (
                   "src", "src/tokenizers", "src/chat", "src/gateway"))}
        out = run(program, folder, self.url, env=env)
        return dict(line.rsplit(" ", 1) for line in out.splitlines())

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


def folder_of_models(work):
    folder = work / "models"
    commit = "0123456789012345678901234567890123456789"
    snapshot = folder / "models--a--b/snapshots" / commit
    snapshot.mkdir(parents=True)
    for place in (folder, snapshot):
        (place / "tokenizer.any").write_text("any")
    return folder


def main():
    read, filled = structs()
    names = read + filled
    bad = []

    def expect(what, got, wanted):
        bad.extend(f"{what}: {key}: {got.get(key)}, expected {code}"
                   for key, code in wanted.items() if got.get(key) != code)
        bad.extend(f"{what}: {key}: not expected" for key in set(got) - set(wanted))

    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        include, newer = newer_library(work, names)
        old = compile_caller(work, "old", ROOT / "include")
        new = compile_caller(work, "new", include, "-DGROWN")
        folder = folder_of_models(work)
        server = Server(work)
        plain = {name: "TNK_OK" for name in names}
        taken = {f"{name} grown": "TNK_OK" for name in names}
        refused = {**taken, **{f"{name} grown": "TNK_ENOTSUP" for name in read}}
        expect("old, old", server.run(old, BUILD, folder), plain)
        expect("old, new", server.run(old, newer, folder), plain)
        expect("new, old", server.run(new, BUILD, folder), {**plain, **refused})
        expect("new, new", server.run(new, newer, folder), {**plain, **taken})
        server.close()
    for line in bad:
        print(line)
    if not read or not filled:
        sys.exit("no table found: the test looks at the wrong place")
    print(f"{len(names)} structs, 2 programs, 2 libraries")
    return 1 if bad else 0


sys.exit(main())
