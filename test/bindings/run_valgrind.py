#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A binding under valgrind: no wrong access to memory, and no leak.

usage: run_valgrind.py python PACKAGE_DIR EXTENSION TNK_COMMAND
       run_valgrind.py node SOURCE_DIR ADDON TNK_COMMAND

For Python it runs run_python.py and run_python_own.py, without the cases that run other processes:
those would be without valgrind. For Node it runs node/life.js. What the interpreters do themselves does not
count: an access counts if the binding is on its stack. Output is TAP, see
test/support/tap.py.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from tap import check, plan

sys.path.insert(0, str(HERE))
from python_package import serve

SOURCE, BINDING, TNK = (pathlib.Path(a).resolve() for a in sys.argv[2:])
ALLOCATORS = {"malloc", "calloc", "realloc", "memalign", "posix_memalign"}


def frames(error):
    """(function, object) from the top of the first stack."""
    return [(frame.findtext("fn") or "", frame.findtext("obj") or "") for frame in error.find("stack").iter("frame")]


def counts(error, leaks_of_callees):
    """Return whether it is an error of the binding."""
    stack = [frame for frame in frames(error) if frame[0] not in ALLOCATORS]
    if error.findtext("kind").startswith("Leak") and not leaks_of_callees:
        stack = stack[:1]
    return any(BINDING.name in where for _, where in stack)


def describe(error):
    what = error.findtext("what") or error.findtext("xwhat/text")
    return f"{what}: {' <- '.join(name for name, _ in frames(error))}"


def run(folder, leaks_of_callees, *command, **env):
    report = folder / "report.xml"
    valgrind = ["valgrind", "--quiet", "--child-silent-after-fork=yes", "--xml=yes", f"--xml-file={report}",
                "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=40"]
    ended = subprocess.run([*valgrind, *map(str, command)], cwd=folder, env={**os.environ, "no_proxy": "*", **env},
                           capture_output=True, text=True, check=False)
    found = xml.etree.ElementTree.parse(report).getroot().iter("error")
    return ended, [describe(error) for error in found if counts(error, leaks_of_callees)]


def python(folder):
    found = []
    for suite, more in (("run_python.py", ["inside"]), ("run_python_own.py", [])):
        # Python's own allocator would hide the end of each object. Packages that are
        # installed on this machine load modules at the start, which takes seconds.
        ended, errors = run(folder, True, sys.executable, "-S", HERE / suite, SOURCE, BINDING, TNK, *more, PYTHONMALLOC="malloc")
        check(ended.returncode == 0, f"{suite} passes", ended.stdout[-4000:] + ended.stderr[-4000:])
        found += errors
    return found


def node(folder):
    server, url = serve(TNK)
    shutil.copytree(SOURCE / "lib", folder / "node_modules/tnk")
    shutil.copy(HERE / "node/life.js", folder)
    (folder / "control").write_bytes(bytes(24))
    # Valgrind is slow with code that is made at run time. Node keeps some memory for
    # each external value at its end.
    ended, found = run(folder, False, "node", "--jitless", "life.js", "0", "0", TINKER_BASE_URL=url,
                       TNK_NODE_ADDON=str(BINDING), TNK_TEST_CONTROL=str(folder / "control"))
    check(ended.returncode == 0 and ended.stdout == "ended at 0\n", "the program runs", ended)
    server.stdin.close()
    server.wait(20)
    return found


def main():
    if shutil.which("valgrind") is None:
        print("1..0 # SKIP valgrind is missing")
        return
    with tempfile.TemporaryDirectory() as name:
        found = {"python": python, "node": node}[sys.argv[1]](pathlib.Path(name))
    check(not found, "valgrind finds nothing", "\n".join(found))
    plan()


main()
