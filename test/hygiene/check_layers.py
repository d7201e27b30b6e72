#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail when a file under src/ includes what its folder may not include.

usage: check_layers.py ROOT [--draw]

layers.txt beside this script has one row for each folder with C files. The row
lists the other folders whose headers it may include. Everything may include its
own folder and the public headers ("tnk/file.h").

Also checked: each folder has a row, and each row a folder; no cycle exists
between folders, nor between features (lib/wire, tools/tnk, chat); the diagram
in src/README.md shows the table, and the last line of each folder's README.md
its row. --draw writes both.
"""
import collections
import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
GENERATED = re.compile(r"[a-z_]+\.pb-c\.h|calls\.inc")
TABLE = "test/hygiene/layers.txt"
BEGIN, END = "<!-- drawn by check_layers.py -->\n", "<!-- end -->\n"


def read_table(root):
    """The rows: folder -> the folders that it may include."""
    rows = {}
    for line in (root / TABLE).read_text().splitlines():
        if line and not line.startswith("#"):
            folder, _, others = line.partition(":")
            if folder in rows:
                raise SystemExit(f"{TABLE}: {folder} has two rows")
            rows[folder] = set(others.split())
    return rows


def allowed(rows, own, other):
    """Whether a file of the folder `own` may include one of `other`."""
    return other in (own, "tnk") or other in rows.get(own, ())


def feature(folder):
    """lib/wire of lib/wire/data, chat of chat/jinja/lex."""
    parts = folder.split("/")
    return "/".join(parts[:2] if parts[0] in ("lib", "tools") else parts[:1])


def features(rows):
    graph = collections.defaultdict(set)
    for folder, others in rows.items():
        graph[feature(folder)] |= {feature(o) for o in others} - {feature(folder)}
    return dict(graph)


def find_cycle(graph):
    """A list of nodes that leads back to its first one, or None."""
    done = set()

    def walk(node, trail):
        if node in trail:
            return trail[trail.index(node):] + [node]
        if node in done:
            return None
        for other in sorted(graph.get(node, ())):
            cycle = walk(other, trail + [node])
            if cycle:
                return cycle
        done.add(node)
        return None

    for node in sorted(graph):
        cycle = walk(node, [])
        if cycle:
            return cycle
    return None


def reach(graph, start):
    seen, todo = set(), [start]
    while todo:
        for other in graph.get(todo.pop(), set()) - seen:
            seen.add(other)
            todo.append(other)
    return seen


def draw(rows):
    """The features as a diagram: an arrow where no longer way exists."""
    graph = features(rows)
    lines = ["```mermaid", "flowchart TD"]
    products = collections.defaultdict(list)
    for name in graph:
        products[name.split("/")[0]].append(name)
    for product, names in products.items():
        if names == [product]:
            lines.append(f"  {product}")
            continue
        lines.append(f"  subgraph {product}")
        lines += [f"    {name.replace('/', '_')}[{name}]" for name in names]
        lines.append("  end")
    for name, others in graph.items():
        far = set().union(*(reach(graph, other) for other in others))
        lines += [f"  {name.replace('/', '_')} --> {other.replace('/', '_')}"
                  for other in sorted(others - far)]
    return "\n".join(lines + ["```"]) + "\n"


def check_diagram(root, rows, writes):
    path = root / "src/README.md"
    text = path.read_text()
    head, begin, rest = text.partition(BEGIN)
    old, end, tail = rest.partition(END)
    if not end:
        return ["src/README.md: there is no place for the diagram"]
    if old == draw(rows):
        return []
    if writes:
        path.write_text(head + begin + draw(rows) + end + tail)
        return []
    return ["src/README.md: the diagram differs from the table; "
            "check_layers.py ROOT --draw writes it"]


def last_line(others):
    return "May include: " + (", ".join(f"`{o}`" for o in sorted(others)) or
                              "no other folder") + ".\n"


def check_readmes(root, rows, writes):
    bad = []
    for folder, others in rows.items():
        path = root / "src" / folder / "README.md"
        if not path.is_file():
            continue  # check_sizes.py tells of it.
        text = path.read_text()
        if text.endswith("\n\n" + last_line(others)):
            continue
        if writes:
            text = re.sub(r"\n*May include: [^\n]*\n$", "", text).rstrip("\n")
            path.write_text(text + "\n\n" + last_line(others))
        else:
            bad.append(f"{path}: its last line differs from the table; "
                       "check_layers.py ROOT --draw writes it")
    return bad


def check_includes(src, rows):
    bad = []
    folders = set()
    for path in sorted(src.rglob("*")):
        if path.suffix not in (".c", ".h", ".cc"):
            continue
        own = path.relative_to(src).parent.as_posix()
        folders.add(own)
        for n, line in enumerate(path.read_text().splitlines(), 1):
            m = INCLUDE.match(line)
            if not m or GENERATED.fullmatch(m[1]):
                continue
            other = pathlib.PurePosixPath(m[1]).parent.as_posix()
            if not allowed(rows, own, other):
                bad.append(f"{path}:{n}: {own} may not include \"{m[1]}\"; "
                           f"{TABLE} has what it may")
    bad += [f"{TABLE}: {name} has no row" for name in sorted(folders - set(rows))]
    bad += [f"{TABLE}: there is no folder {name}"
            for name in sorted(set(rows) - folders)]
    return bad


def main():
    root = pathlib.Path(sys.argv[1])
    rows = read_table(root)
    bad = check_includes(root / "src", rows)
    for graph, what in (rows, "folders"), (features(rows), "features"):
        cycle = find_cycle(graph)
        if cycle:
            bad.append(f"{TABLE}: a cycle of {what}: " + " ".join(cycle))
    if find_cycle(features(rows)) is None:
        bad += check_diagram(root, rows, "--draw" in sys.argv[2:])
        bad += check_readmes(root, rows, "--draw" in sys.argv[2:])
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
