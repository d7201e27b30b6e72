#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The crates for Rust against a local server.

usage: run_rust.py SOURCE_DIR PROJECT_ROOT BUILD_DIR TNK_COMMAND TNK_API_JSON [PRELOAD]

Without cargo, or without the crates that the tests need, everything but the comparison of
the generated files is skipped. PRELOAD is the library of preload.c. Output is TAP, see
test/support/tap.py.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from tap import check, plan, skip

sys.path.insert(0, str(HERE))
from python_package import KEY, serve

SOURCE, ROOT, BUILD, TNK, API = (pathlib.Path(path).resolve() for path in sys.argv[1:6])
PRELOAD = sys.argv[6] if len(sys.argv) > 6 else None
TARGET = BUILD / "rust"
# The crates, and the programs of the documents as examples.
COPY = BUILD / "rust-crates"
# A build without the tokenizers has no other libraries either.
HAS_ALL = all((BUILD / "meson-uninstalled" / f"{name}-uninstalled.pc").exists()
              for name in ("tnk-chat", "tnk-tokenizers", "tnk-gateway"))
FEATURES = ["--features", "tnk/gateway"] if HAS_ALL else []
# Every so many allocations one fails, in so many processes.
STRIDE, N_PROCESSES = 29, 2


def environment(**more):
    path = [str(BUILD / "meson-uninstalled"), os.environ.get("PKG_CONFIG_PATH")]
    libraries = [*(str(BUILD / "src" / part) for part in ("", "chat", "tokenizers", "gateway")),
                 os.environ.get("LD_LIBRARY_PATH")]
    return {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "PKG_CONFIG_PATH": ":".join(filter(None, path)),
            "LD_LIBRARY_PATH": ":".join(filter(None, libraries)), "TNK_COMMAND": str(TNK), "no_proxy": "*",
            "TINKER_API_KEY": KEY, "RUST_BACKTRACE": "0", "CARGO_INCREMENTAL": "0", **more}


def run(*command, timeout=600, **more):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout,
                           check=False, env=environment(**more), cwd=COPY)
    return ended.returncode, ended.stdout, ended.stderr


def is_generated():
    ended = run(sys.executable, SOURCE / "generate.py", API, "--check")
    check(ended[0] == 0, "the generated files are what the headers say", ended)
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(SOURCE, pathlib.Path(folder) / "rust")
        text = (copy / "tnk-sys/src/generated.rs").read_text()
        (copy / "tnk-sys/src/generated.rs").write_text(text.replace("pub n_samples: u32", "pub n_samples: u64", 1))
        ended = run(sys.executable, copy / "generate.py", API, "--check")
        check(ended[0] == 1 and "generated.rs" in ended[2], "and a change is found", ended)


def missing():
    """Why nothing can be compiled, or None."""
    # Where rustup puts it.
    os.environ["PATH"] += f":{pathlib.Path.home() / '.cargo/bin'}"
    if shutil.which("cargo") is None:
        return "no cargo"
    # From the registry, or from what an earlier run has fetched.
    ended = run("cargo", "fetch", "--locked", CARGO_NET_RETRY="1", CARGO_HTTP_TIMEOUT="20")
    if ended[0] != 0:
        return "the crates cannot be fetched: " + (ended[2].strip().splitlines() or ["?"])[-1]
    return None


def copy_crates():
    """The crates with the programs of the README and the guide, so that cargo runs once. Returns
    the number of programs. Files that have not changed keep their times."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(SOURCE, COPY)
    made = 0
    for path in (SOURCE / "README.md", ROOT / "examples/guides/rust.md"):
        for block in re.findall(r"```rust\n(.*?)```", path.read_text(encoding="utf-8"), re.S):
            if ("chat::" in block or "Gateway" in block) and not HAS_ALL:
                continue
            program = COPY / f"tnk/examples/program_{made}.rs"
            program.write_text(block, encoding="utf-8")
            os.utime(program, (path.stat().st_atime, path.stat().st_mtime))
            made += 1
    return made


def passes_tests():
    code, out, err = run("cargo", "test", "--locked", "--offline", "--workspace", *FEATURES)
    tests = re.findall(r"^test (\S+) \.\.\. (\w+)$", out, re.M)
    check(code == 0 and "test result: FAILED" not in out, "the tests of the crates pass", out[-6000:] + err[-6000:])
    code, _, lean = run("cargo", "check", "--locked", "--offline", "-p", "tnk")
    check(code == 0 and "warning" not in lean, "the crate compiles without features", lean)
    check("warning" not in err, "and everything compiles without warnings", err)
    names = {name for name, ok in tests if ok == "ok"}
    for name in sorted(names):
        if not name.startswith("tnk_"):
            check(True, name)
    check(len(names) > 90 and "ends::forks" in names, "all of them were found", names)


def resumes(url, folder):
    """A program that is killed after a step continues from its last save."""
    program = TARGET / "debug/examples/resume"

    def losses(out):
        return dict(re.findall(r"^(loss \d) (\S+)$", out, re.M))
    code, out, err = run(program, folder / "whole", TINKER_BASE_URL=url)
    wanted = losses(out)
    check(code == 0 and len(wanted) == 8, "a run ends", (out, err))
    for last in range(8):
        directory = folder / f"killed-{last}"
        with subprocess.Popen([program, directory], stdout=subprocess.PIPE, text=True,
                              env=environment(TINKER_BASE_URL=url)) as one:
            first = ""
            for line in one.stdout:
                first += line
                if line.startswith(f"loss {last}"):
                    one.kill()
        code, out, err = run(program, directory, TINKER_BASE_URL=url)
        begin = int(out.split()[1]) if code == 0 else -1
        check(code == 0 and begin >= last - last % 2, f"a run that is killed after loss {last} resumes",
              (first, out, err))
        check({**losses(first), **losses(out)} == wanted, "with the losses of the whole run", (first, out, wanted))


def leaves(url):
    """However a program ends, it does not crash, and the server knows that its session has ended."""
    ways = {"drop": 0, "forget": 0, "exit": 0, "thread": 0, "waker": 0, "loss": 0, "panic": 101}
    if HAS_ALL:
        ways["gateway"] = 0
    for way, wanted in ways.items():
        for _ in range(10):
            code, out, err = run(TARGET / "debug/examples/leave", way, TINKER_BASE_URL=url, timeout=60)
            # The process ends after a loss function that runs.
            is_right = code == wanted and (way == "loss") == ("computed" in out)
            if not is_right:
                break
        check(is_right and (wanted or not err), f"a program ends: {way}", (code, out, err))
        code, out, err = run(TNK, "session", "search", "--json", TINKER_BASE_URL=url)
        states = [one["status"]["type"] for one in json.loads(out)["sessions"]]
        check(len(states) >= 10 and set(states[:10]) == {"client_finished"}, "and so do its sessions", states)


def leaves_inside(url):
    """A loss function may end the process. Nobody tells the server then."""
    for _ in range(10):
        code, out, err = run(TARGET / "debug/examples/leave", "loss exit", TINKER_BASE_URL=url, timeout=60)
        if code != 0:
            break
    check(code == 0 and not err, "a loss function ends the process", (code, err))


def documents(url, folder, made):
    """The programs of the README and the guide, as they are."""
    check(made == (10 if HAS_ALL else 8), "all programs of the documents were found", made)
    for i in range(made):
        code, out, err = run(TARGET / f"debug/examples/program_{i}", TINKER_BASE_URL=url, TMPDIR=str(folder))
        check(code == 0 and out and not err, f"program {i} of the documents runs", (out, err))


def fails_allocations(url, folder):
    """Each allocation that fails gives an error, and no operation hangs."""
    if PRELOAD is None:
        skip("without memory", "the library for it is not built")
        return
    running = []
    for i in range(N_PROCESSES):
        control = folder / f"control-{i}"
        control.write_bytes(bytes(24))
        env = environment(TINKER_BASE_URL=url, LD_PRELOAD=PRELOAD, TNK_TEST_CONTROL=str(control),
                          TNK_TEST_OBJECT="libtnk.so")
        running.append(subprocess.Popen([TARGET / "debug/examples/life", str(i * STRIDE // N_PROCESSES + 1),
                                         str(STRIDE)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=env))
    for i, one in enumerate(running):
        out, err = one.communicate()
        reached = int(out.split()[-1]) if one.returncode == 0 else 0
        check(reached > 100 and "TNK_ENOMEM" in out, f"without allocations of the library, {i + 1} of {N_PROCESSES}",
              (out[-3000:], err[-3000:]))


def passes_valgrind(url, folder):
    if shutil.which("valgrind") is None:
        skip("valgrind", "it is missing")
        return
    report = folder / "report.xml"
    code, out, err = run("valgrind", "--quiet", "--xml=yes", f"--xml-file={report}", "--leak-check=full",
                         "--show-leak-kinds=definite", TARGET / "debug/examples/life", TINKER_BASE_URL=url)
    check(code == 0 and out == "ended at 0\n", "a program runs under valgrind", (out, err))
    found = [error.findtext("what") or error.findtext("xwhat/text")
             for error in xml.etree.ElementTree.parse(report).getroot().iter("error")]
    check(not found, "valgrind finds nothing", report.read_text()[-6000:] if found else "")


def main():
    made = copy_crates()
    is_generated()
    why = missing()
    if why is not None:
        skip("the crates", why)
        plan()
        return
    passes_tests()
    server, url = serve(TNK)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        documents(url, folder, made)
        resumes(url, folder)
        leaves(url)
        leaves_inside(url)
        passes_valgrind(url, folder)
        fails_allocations(url, folder)
    server.stdin.close()
    server.wait(20)
    plan()


main()
