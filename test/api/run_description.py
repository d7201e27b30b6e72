#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the JSON description of the API with the headers and the libraries.

usage: run_description.py JSON CDEF INCLUDE_DIR CALLS_INC LIBRARIES -- COMPILER [ARG ...]

A C program is written from the description. It includes the headers, declares each
function once more, and asserts each size, offset, value and type. The compiler
refuses it if anything differs. Output is TAP, see test/support/tap.py.
"""
import copy
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tap import check, plan

THREADS = {"any", "any except the runtime's", "loop thread", "loop thread, or taker"}
SPLIT = sys.argv.index("--")
CDEF, INCLUDE, CALLS = map(pathlib.Path, sys.argv[2:5])
API = json.loads(pathlib.Path(sys.argv[1]).read_text())


def compiles(text):
    made = subprocess.run([*sys.argv[SPLIT + 1:], "-std=c11", "-Wall", "-Werror", "-Wno-unused-function", "-I", str(INCLUDE), "-fsyntax-only",
                           "-x", "c", "-"], input=text, text=True, capture_output=True)
    return made.returncode == 0, made.stderr[:600]


def declared(kind, name):
    """The C declaration of a name with the type."""
    if "(*)" in kind:
        return kind.replace("(*)", f"(*{name})", 1)
    dims = re.search(r"(\[.*\])$", kind)
    return f"{kind[:dims.start()]} {name}{dims[1]}" if dims else f"{kind} {name}"


def member_checks(one):
    for field in one["fields"]:
        yield f"_Static_assert(offsetof({one['name']}, {field['name']}) == {field['offset']}, \"{field['name']}\");"
        # A pointer to the member is compatible only if the type is the same.
        kind = field["type"]
        pointer = declared(kind, "PLACE").replace("PLACE", "(*p)")
        if "(*(*p))" in pointer:
            pointer = pointer.replace("(*(*p))", "(**p)")
        yield (f"static inline void check_{one['name']}_{field['name']}({one['name']} *s) {{ "
               f"{pointer} = &s->{field['name']}; (void)p; }}")


def program(api):
    headers = {one["header"] for kind in ("functions", "structs", "enums", "callbacks") for one in api[kind]}
    lines = [f'#include "{h}"' for h in sorted(headers)]
    lines += ["#include <stddef.h>", "#include <stdint.h>", "#if UINTPTR_MAX == 0xffffffffffffffff"]
    for one in api["structs"] + api["unions"]:
        lines.append(f"_Static_assert(sizeof({one['name']}) == {one['size']}, \"{one['name']}\");")
        lines.append(f"_Static_assert(_Alignof({one['name']}) == {one['align']}, \"{one['name']}\");")
        lines += member_checks(one)
    lines.append("#endif")
    for one in api["enums"]:
        lines += [f"_Static_assert({name} == {value}, \"{name}\");" for name, value in one["values"].items()]
    for name, value in api["constants"].items():
        if isinstance(value, int):
            lines.append(f"_Static_assert({name} == {value}, \"{name}\");")
    for one in api["functions"] + api["callbacks"]:
        params = ", ".join(declared(p["type"], p["name"]) for p in one["params"]) or "void"
        if one in api["callbacks"]:
            lines.append(f"typedef {one['returns']['type']} (*{one['name']})({params});")
        else:
            lines.append(f"{one['returns']['type']} {one['name']}({params});")
    return "\n".join(lines) + "\n"


def exported():
    names = set()
    for library in sys.argv[5:SPLIT]:
        out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
        names.update(re.findall(r" T (tnk_\w+)", out))
    return names


def spoiled():
    """Descriptions with one error each."""
    for change in (lambda a: a["structs"][3]["fields"][1].update(offset=1),
                   lambda a: a["structs"][3]["fields"][1].update(type="short"),
                   lambda a: a["structs"][3].update(size=1),
                   lambda a: a["functions"][9]["returns"].update(type="short"),
                   lambda a: a["functions"][9]["params"].append({"name": "more", "type": "int"}),
                   lambda a: a["callbacks"][0]["params"].pop(),
                   lambda a: a["enums"][0]["values"].update(TNK_LOG_NONE=77)):
        api = copy.deepcopy(API)
        change(api)
        yield api


def main():
    check(*((lambda ok: (ok[0], "the description agrees with the headers", ok[1]))(compiles(program(API)))))
    check(not any(compiles(program(api))[0] for api in spoiled()), "an error in the description is found")
    names = {f["name"] for f in API["functions"]}
    check(names == exported(), "every exported function is described", names ^ exported())
    bad = [f["name"] for f in API["functions"] if f["thread"] not in THREADS or not f["since"] or not f["doc"]]
    check(not bad, "each function says its thread and its version", bad)
    on_loop = {f["name"] for f in API["functions"] if f["thread"].startswith("loop thread") and f["library"] == "tnk"
               and f["callable_from_callbacks"]}
    callable_ = set(re.findall(r'^  \{"(tnk_\w+)"', CALLS.read_text(), re.M))
    check(on_loop == callable_, "a queue can call each function of the loop's thread", on_loop ^ callable_)
    check(*((lambda ok: (ok[0], "the declarations for an FFI compile alone", ok[1]))(
        compiles("#include <stddef.h>\n#include <stdint.h>\n" + CDEF.read_text()))))
    missing = [n for n in names if f"{n}(" not in CDEF.read_text()]
    check(not missing, "they have every function", missing)
    plan()


main()
