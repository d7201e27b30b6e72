#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No include cycle, neither between headers nor between modules.

usage: check_cycles.py SRC_DIR

A module is x.c together with x.h, and with x_private.h, which x.c shares with
its helpers: two files that need each other's headers are one unit that has been
cut in two.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


def module_of(path):
    return pathlib.PurePosixPath(path).with_suffix("").as_posix().removesuffix(
        "_private")


def read_graph(src):
    graph = {}
    for path in sorted(src.rglob("*")):
        if path.suffix not in (".c", ".h", ".cc"):
            continue
        module = module_of(path.relative_to(src))
        out = graph.setdefault(module, set())
        for line in path.read_text().splitlines():
            m = INCLUDE.match(line)
            if m and (src / m[1]).is_file():
                out.add(module_of(m[1]))
        out.discard(module)
    return graph


def find_cycle(graph):
    """The first cycle met by a depth-first walk, or None."""
    done = set()
    for start in graph:
        trail = [(start, iter(sorted(graph[start])))]
        on_trail = [start]
        while trail and start not in done:
            node, rest = trail[-1]
            for nxt in rest:
                if nxt in on_trail:
                    return on_trail[on_trail.index(nxt):] + [nxt]
                if nxt not in done:
                    trail.append((nxt, iter(sorted(graph.get(nxt, ())))))
                    on_trail.append(nxt)
                    break
            else:
                done.add(node)
                trail.pop()
                on_trail.pop()
    return None


def main():
    graph = read_graph(pathlib.Path(sys.argv[1]))
    if not graph:
        print("no module found: the check looks at the wrong place")
        return 1
    cycle = find_cycle(graph)
    if cycle:
        print("include cycle: " + " -> ".join(cycle))
    return 1 if cycle else 0


sys.exit(main())
