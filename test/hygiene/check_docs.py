#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every exported declaration has a full comment right above it.

usage: check_docs.py INCLUDE_DIR

"Right above" means that the line before the declaration's first line ends a
comment. A struct, enum or callback type that is named in public needs one too;
that of a function must also say on which thread it may be called ("Thread:")
and since which version it is there ("Since:"), and one that returns a promise
which errors reject it ("Rejects with:" and groups of error.h, or codes). A list
that was run together with what stands around it is found by a word like "Thread:"
at the end of a line, or "Rejects with:" behind something.
"""
import pathlib
import re
import sys

EXPORT = re.compile(r"TNK_API\b")
TYPE = re.compile(r"typedef\s")
FUNCTION_NEEDS = ("Thread:", "Since:")
PROMISE = re.compile(r"TNK_API tnk_promise_t \*\s*tnk_(?!promise_)\w+\(")
RUN_TOGETHER = re.compile(r"(Thread|Since|Rejects with|Lifetime):\s*$|\S.*\w.*Rejects with:", re.M)
ERRORS = re.compile(r"Rejects with:[\s*]*(Caller|TNK_E|the error)")


def comment_above(lines, n):
    """The comment that ends on the line before lines[n], or None."""
    if n == 0 or not lines[n - 1].rstrip().endswith("*/"):
        return None
    first = n - 1
    while first > 0 and "/*" not in lines[first]:
        first -= 1
    return "\n".join(lines[first:n])


def check(path, lines):
    """Yield a sentence for each declaration that falls short, None for others."""
    for n, line in enumerate(lines):
        is_function = EXPORT.match(line)
        if not is_function and not TYPE.match(line):
            continue
        comment = comment_above(lines, n)
        missing = [w for w in FUNCTION_NEEDS if w not in (comment or "")]
        if comment is None:
            yield f"{path}:{n + 1}: no comment above: {line}"
        elif is_function and PROMISE.match("\n".join(lines[n:n + 2])) and \
                not ERRORS.search(comment):
            yield f"{path}:{n + 1}: no list of errors for: {line}"
        elif RUN_TOGETHER.search(comment):
            yield f"{path}:{n + 1}: words run together above: {line}"
        elif is_function and missing:
            yield f"{path}:{n + 1}: no {' '.join(missing)} for: {line}"
        else:
            yield None


def main():
    seen = []
    for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.h")):
        seen += check(path, path.read_text().splitlines())
    bad = [text for text in seen if text]
    for text in bad:
        print(text)
    if not seen:
        print("no declaration found: the check looks at the wrong place")
    return 1 if bad or not seen else 0


sys.exit(main())
