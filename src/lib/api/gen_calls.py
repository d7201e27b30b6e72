#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the functions that tnk_queue_call() can call, from the public headers.

usage: gen_calls.py INCLUDE_DIR OUTPUT

They are all functions of libtnk that must be called on the loop's thread, except
those that may not be called from callbacks, because they wait. For each there is a
function that converts its arguments, and a row of the table `callees`.
"""
import pathlib
import re
import sys

OTHER_LIBRARIES = ("tokenizers.h", "chat.h", "gateway.h")
DECLARATION = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*TNK_API\s+([^;(]*?)\b(tnk_\w+)\s*\(([^;]*)\);", re.S)
# bindings.h has room for so many.
MAX_ARGS = 8


def member(type_):
    """The member of tnk_value_t that holds a value of the C type."""
    if type_.endswith("*"):
        return "pointer"
    if type_.endswith("_cb"):
        return "function"
    return "number" if type_ in ("double", "float") else "integer"


def argument(type_, index):
    value = f"a[{index}].{member(type_)}"
    return value if type_.endswith("*") else f"({type_}){value}"


def types_of(parameters):
    for parameter in " ".join(parameters.split()).split(","):
        if parameter.strip() != "void":
            yield re.sub(r"\w+$", "", parameter.strip()).strip()


def callee(text, result, name, parameters):
    """The C text of one converting function, and its row."""
    types = list(types_of(parameters))
    if len(types) > MAX_ARGS:
        sys.exit(f"{name} has more arguments than tnk_call_t has room for")
    call = f"{name}({', '.join(argument(t, i) for i, t in enumerate(types))})"
    kind = member(result)
    if result != "void":
        cast = {"pointer": "(void *)", "integer": "(int64_t)", "number": ""}[kind]
        call = f"r->{kind} = {cast}{call}"
    gives_promise = int(result == "tnk_promise_t *" and "Borrowed" not in text)
    return (f"static void do_{name}(const tnk_value_t *a, tnk_value_t *r) {{\n"
            f"  (void)a;\n  (void)r;\n  {call};\n}}\n",
            f'  {{"{name}", do_{name}, {len(types)}, {gives_promise}}},\n')


def main():
    include = pathlib.Path(sys.argv[1], "tnk")
    found = {}
    headers = []
    for path in sorted(include.glob("*.h")):
        if path.name in OTHER_LIBRARIES:
            continue
        headers.append(f'#include "tnk/{path.name}"\n')
        for comment, result, name, parameters in DECLARATION.findall(path.read_text()):
            text = " ".join(re.sub(r"\n\s*\*", " ", comment).split())
            if "Thread: loop thread" in text and "Callable from callbacks: no" not in text:
                found[name] = callee(text, " ".join(result.split()), name, parameters)
    if len(found) < 50:
        sys.exit("hardly a function found: the headers are written otherwise now")
    rows = [found[name] for name in sorted(found)]
    pathlib.Path(sys.argv[2]).write_text(
        "/* Written by gen_calls.py. */\n" + "".join(headers) + "\n"
        + "\n".join(function for function, _ in rows)
        + "\nstatic const callee_t callees[] = {\n" + "".join(row for _, row in rows)
        + "};\n")


main()
