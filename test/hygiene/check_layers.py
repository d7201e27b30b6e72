#!/usr/bin/env python3
"""Fail when a file under src/ includes a header of a sibling or higher layer.

Internal includes are written "folder/file.h", public ones "tnk/file.h"; any
other quoted form is an error too, so that nothing slips past the check. The
programs beside the layers (command, local server, tokenizers) may use what
their row names. A folder inside a layer (task/hub) and the layer itself do not
see each other.
"""
import pathlib
import re
import sys

RANK = {"base": 0, "codec": 1, "flow": 1, "loop": 2,
        "net": 3, "http": 4, "task": 5, "api": 6}
BESIDE = {"local": {"base", "codec"}, "cli": {"base", "codec", "local"},
          "tokenizers": {"base"}}
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
GENERATED = re.compile(r"[a-z_]+\.pb-c\.h$")


def allowed(own, folder):
    if folder in (own, "tnk"):
        return True
    if own in BESIDE:
        return folder in BESIDE[own]
    return folder in RANK and own in RANK and RANK[folder] < RANK[own]


def inner(parts):
    """The folder inside a layer, of a path or an include; None: the layer."""
    return parts[1] if len(parts) > 2 else None


def main():
    src = pathlib.Path(sys.argv[1])
    bad = 0
    files = [p for p in src.rglob("*") if p.suffix in (".c", ".h", ".cc")]
    for path in sorted(files):
        place = path.relative_to(src).parts
        own = place[0]
        for n, line in enumerate(path.read_text().splitlines(), 1):
            m = INCLUDE.match(line)
            if not m or GENERATED.fullmatch(m[1]):
                continue
            target = m[1].split("/")
            apart = own == target[0] and inner(place) != inner(target)
            if apart or not allowed(own, target[0]):
                print(f"{path}:{n}: {own} may not include \"{m[1]}\"")
                bad = 1
    return bad


sys.exit(main())
