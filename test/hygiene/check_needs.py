#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test/install.sh takes the packages that this system offers, and names what is
missing in plain words where there is no apt. Its tools are played here.

usage: check_needs.py INSTALL_SH
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCRIPT = sys.argv[1]
REAL = ["awk", "cat", "cc", "grep", "id", "mktemp", "sed", "sh", "sort", "tr"]
PLAYED = {
    "apt-cache": 'shift; for p; do echo "$p:"; case " $OFFERED " in *" $p "*) '
                 'echo "  Candidate: 1.0" ;; *) echo "  Candidate: (none)" ;; esac; done',
    "apt-get": 'echo "apt-get $*" >>"$LOG"',
    "dpkg-query": 'for p; do :; done; case " $INSTALLED " in *" $p "*) '
                  'echo "install ok installed" ;; *) exit 1 ;; esac',
    "sudo": 'exec "$@"',
    "env": 'shift; exec "$@"',
}
BUILD = ("gcc g++ libc6-dev dpkg-dev meson ninja-build pkg-config libuv1-dev "
         "libmbedtls-dev libjansson-dev libprotobuf-c-dev protobuf-c-compiler "
         "libzstd-dev zlib1g-dev libnghttp2-dev libhiredis-dev "
         "libsqlite3-dev libsentencepiece-dev")
TEST = BUILD + " python3 ca-certificates"


def run(folder, played, what, offered="", installed=""):
    """The status of install.sh, its words, and the packages it installs."""
    tools = pathlib.Path(folder) / "bin"
    shutil.rmtree(tools, ignore_errors=True)
    tools.mkdir()
    for name in REAL:
        if shutil.which(name):
            (tools / name).symlink_to(shutil.which(name))
    for name in played:
        (tools / name).write_text("#!/bin/sh\n" + PLAYED[name] + "\n")
        (tools / name).chmod(0o755)
    log = pathlib.Path(folder) / "log"
    log.write_text("")
    done = subprocess.run(
        [str(tools / "sh"), SCRIPT, what], text=True, capture_output=True,
        env={"PATH": str(tools), "LOG": str(log), "OFFERED": offered,
             "INSTALLED": installed})
    lines = [line for line in log.read_text().splitlines() if " install " in line]
    packages = lines[0].split(" install ")[1].split() if lines else []
    return done.returncode, done.stdout + done.stderr, packages


def main():
    bad = 0

    def check(name, holds, seen):
        nonlocal bad
        if not holds:
            print(f"{name}: {seen}")
            bad = 1

    with tempfile.TemporaryDirectory() as folder:
        for name, offered, llhttp in [
                ("llhttp as source", "node-llhttp", "node-llhttp"),
                ("llhttp as library", "node-llhttp libllhttp-dev", "libllhttp-dev")]:
            seen = run(folder, PLAYED, "build", f"{BUILD} {offered}", "")
            check(name, seen[0] == 0 and llhttp in seen[2] and
                  sorted(seen[2]) == sorted(BUILD.split() + [llhttp]), seen)
        seen = run(folder, PLAYED, "build", f"{BUILD} node-llhttp",
                   f"{BUILD} node-llhttp")
        check("nothing is missing", seen == (0, "", []), seen)
        seen = run(folder, PLAYED, "build", f"{BUILD} node-llhttp libllhttp-dev",
                   f"{BUILD} node-llhttp")
        check("the source is there, but not the library",
              seen[2] == ["libllhttp-dev"], seen)
        seen = run(folder, PLAYED, "test", f"{TEST} libllhttp-dev",
                   f"{BUILD} libllhttp-dev python3")
        check("no clang-format 14", seen[2] == ["python3-pycparser", "ca-certificates"], seen)
        seen = run(folder, PLAYED, "test", f"{TEST} libllhttp-dev clang-format-14",
                   f"{TEST} libllhttp-dev")
        check("clang-format 14", seen[2] == ["python3-pycparser", "clang-format-14"], seen)
        seen = run(folder, [], "build")
        check("no apt", seen[0] == 2 and "Meson 1.0" in seen[1] and
              "libuv 1.42" in seen[1] and "library_path" in seen[1] and
              "-dev" not in seen[1] and "Python" not in seen[1], seen)
    return bad


sys.exit(main())
