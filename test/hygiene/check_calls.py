#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail on circles of folders and on functions that nobody calls.

usage: check_calls.py SOURCE_ROOT BUILD_ROOT

layers.txt says who may call whom, and the symbols of the objects say who does. A
file calls another one when its object needs a symbol (a function, or a table
with functions in it) that the other one's defines; what is handed over as an
argument is no call. Checked is all of src/ that was built, except that of C++.

1. Circles: folders that call each other, at once or by way of others. No folder
   could be read, tested or replaced without the others. The files of one folder
   may call each other: a direct call is easier to follow than a pointer to a
   function that has one target.
2. Dead code: a function that is not exported (TNK_API) and that nothing in
   src/ calls, whatever tests do, and a macro or a member that nothing there
   names. A function that only its own file calls is static, unless tests call
   it too.
3. Layers: a file calls only files that it might include by layers.txt. Outside
   of the library, it may also call what is exported.

A function may wait for its caller: calls.txt beside this script lists such
functions with their reason. What is listed and no longer there is a fault too.
Lines that end in "to go" are debts, of that kind or calls that layers.txt
forbids: delete them when they are paid, add none. Circles have no list.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_layers

SOURCES = (".c", ".h", ".cc", ".inc")
NO_WORDS = re.compile(r'''/\*.*?\*/|"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])+\'''',
                      re.S)
# Macros (but for the guards of headers) and functions that stand in a header.
IN_HEADER = re.compile(r"^#define (\w+)(?<!_H)\b|^static inline [^;{]*?(\w+)\(",
                       re.M)
# Members of structs in headers.
MEMBER = re.compile(r"^  (?:const )?(?:struct )?\w+\s+\**(\w+)(?:\[.*?\])?;",
                    re.M)
EXPORT = re.compile(r"TNK_API\b[^;{]*?\b(tnk_\w+)\(")


def read_objects(source, build):
    """The built files below src/: path without extension -> objects."""
    objects = collections.defaultdict(set)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        folder = pathlib.Path(entry["directory"])
        path = (folder / entry["file"]).resolve()
        if path.suffix == ".c" and (source / "src") in path.parents:
            name = path.relative_to(source / "src").with_suffix("").as_posix()
            objects[name].add((folder / entry["output"]).resolve())
    return objects


def read_symbols(objects):
    """Of each file: the symbols that it defines and those that it needs."""
    defined, needed = {}, {}
    owner = {str(o): name for name, all in objects.items() for o in all}
    for name in objects:
        defined[name], needed[name] = set(), set()
    out = subprocess.run(["nm", "-A", "-g", "-P", *sorted(owner)],
                         check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        file, symbol, kind = re.match(r"(.*?): (\S+) (\S)", line).groups()
        if symbol.startswith("_"):
            continue  # Of the compiler.
        (needed if kind == "U" else defined)[owner[file]].add(symbol)
    return defined, needed


def make_graph(defined, needed):
    """Who calls whom: file -> file -> symbols."""
    home = collections.defaultdict(set)
    for name, symbols in defined.items():
        for symbol in symbols:
            home[symbol].add(name)
    graph = {name: collections.defaultdict(set) for name in defined}
    for name, symbols in needed.items():
        for symbol in symbols:
            for other in home[symbol] - {name}:
                graph[name][other].add(symbol)
    return graph


def reach(graph, start):
    seen, todo = set(), [start]
    while todo:
        for other in graph[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def folder_of(name):
    return pathlib.PurePosixPath(name).parent.as_posix()


def by_folder(graph):
    """Who calls whom, by folder: folder -> folder -> symbols."""
    folders = {folder_of(name): collections.defaultdict(set) for name in graph}
    for name in graph:
        for other, symbols in graph[name].items():
            if folder_of(other) != folder_of(name):
                folders[folder_of(name)][folder_of(other)] |= symbols
    return folders


def find_circles(graph):
    """The circles, each as a sorted tuple of all folders that are in it."""
    reached = {name: reach(graph, name) for name in graph}
    circles = {tuple(sorted({b for b in reached[a] if a in reached[b]}))
               for a in graph if a in reached[a]}
    return sorted(circles)


def read_excuses(source):
    """What is let pass: kind -> the names of each line."""
    excuses = {"layer": [], "unused": []}
    path = source / "test/hygiene/calls.txt"
    for line in path.read_text().splitlines() if path.exists() else ():
        if line and not line.startswith("#"):
            names, reason = line.split(" -- ")
            kind, *names = names.split()
            excuses[kind].append(tuple(names))
            if reason != "to go" and kind == "layer":
                raise SystemExit(f"{path}: no reason is good enough: {line}")
    return excuses


def check_circles(graph):
    complaints = []
    for circle in find_circles(graph):
        complaints.append("circle of calls: " + " ".join(circle))
        complaints += [f"  {a} -> {b}: {' '.join(sorted(graph[a][b]))}"
                       for a in circle for b in circle if b in graph[a]]
    return complaints


def check_layers_of(rows, graph, exported, excused):
    complaints = []
    climbs = set()
    for caller in graph:
        room = folder_of(caller)
        for other, symbols in graph[caller].items():
            home = folder_of(other)
            if check_layers.allowed(rows, room, home):
                continue
            if not room.startswith("lib/"):
                symbols = symbols - exported
            if not symbols:
                continue
            climbs.add((caller, other))
            if (caller, other) in excused:
                continue
            complaints += [f"{caller} may not call {symbol} of {other}"
                           for symbol in sorted(symbols)]
    return complaints + [f"{a} does not call {b}, take it off calls.txt"
                         for a, b in excused if (a, b) not in climbs]


# What the system and interpreters call.
ENTRIES = {"main", "PyInit__native", "luaopen_tnk_native", "napi_register_module_v1",
           "node_api_module_get_api_version_v1"}


def words(text):
    """The words of C source, comments and texts aside."""
    return re.findall(r"\w+", NO_WORDS.sub(" ", text))


def find_dead(source, defined, needed, exported):
    """The functions that nobody calls: name -> what to do."""
    src = {path: words(path.read_text())
           for path in (source / "src").rglob("*") if path.suffix in SOURCES}
    named = collections.Counter(word for all in src.values() for word in all)
    tested = {word for path in (source / "test").rglob("*.[ch]")
              for word in words(path.read_text())}
    called = set().union(*needed.values())
    dead = {}
    for name, symbols in defined.items():
        own = src[source / "src" / (name + ".c")]
        for symbol in symbols - exported - called - ENTRIES:
            if own.count(symbol) < 2:  # Once it is its definition.
                dead[symbol] = f"{name}: none but tests call {symbol}"
            elif symbol not in tested:
                dead[symbol] = f"{name}: {symbol} should be static"
    for path in src:
        if path.suffix == ".h":
            text = NO_WORDS.sub(" ", path.read_text())
            names = [max(pair) for pair in IN_HEADER.findall(text)]
            for name in names + MEMBER.findall(text):
                if named[name] < 2:
                    dead[name] = f"{path.name}: nothing uses {name}"
    return dead


def check_dead(dead, excused):
    return [dead[name] for name in sorted(dead) if (name,) not in excused] + [
        f"{name} is used or gone, take it off calls.txt"
        for (name,) in excused if name not in dead]


def main():
    source, build = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    objects = read_objects(source, build)
    if not objects:
        print("no object found: the check looks at the wrong place")
        return 1
    missing = [name for name in objects
               if not all(o.exists() for o in objects[name])]
    if missing:
        print("not built: " + " ".join(missing))
        return 1
    defined, needed = read_symbols(objects)
    exported = {name for path in (source / "include").rglob("*.h")
                for name in EXPORT.findall(path.read_text())}
    excuses = read_excuses(source)
    graph = make_graph(defined, needed)
    complaints = check_circles(by_folder(graph))
    complaints += check_layers_of(check_layers.read_table(source), graph,
                                  exported, excuses["layer"])
    complaints += check_dead(find_dead(source, defined, needed, exported),
                             excuses["unused"])
    print("\n".join(complaints))
    return 1 if complaints else 0


sys.exit(main())
