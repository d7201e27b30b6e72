#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print the components of a build as a bill of materials in CycloneDX's JSON.

usage: components.py VERSION FOLDER

FOLDER has the shared libraries. The components are the libraries that these need,
with the versions that were installed when they were built. SOURCE_DATE_EPOCH is
the time of the document.
"""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

# Of the compiler and the C library; every program has these.
SYSTEM = re.compile(r"lib(c|m|gcc_s|stdc\+\+|pthread|dl)\.so|ld-linux")


def run(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def needed(path):
    return re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", run("readelf", "-d", path))


def package(soname):
    """Name and version of the package that has a library."""
    cache = run("ldconfig", "-p")
    path = re.search(rf"^\s*{re.escape(soname)} .*=> (\S+)", cache, re.M)[1]
    found = subprocess.run(["dpkg", "-S", os.path.realpath(path)], capture_output=True, text=True)
    name = found.stdout.split(":")[0] or soname
    got = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", name],
                         capture_output=True, text=True)
    return tuple(got.stdout.split()) if got.returncode == 0 else (soname, "unknown")


def main():
    version, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    own = {p.name for p in folder.iterdir()}
    wanted = {name for p in folder.iterdir() for name in needed(p)}
    found = {package(name) for name in wanted if not SYSTEM.match(name) and
             not any(o.startswith(name) for o in own)}
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    root = f"pkg:generic/tnk@{version}"
    print(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "library", "name": "tnk", "version": version, "bom-ref": root,
                          "purl": root, "licenses": [{"license": {"id": "MIT"}}]}},
        "components": [
            {"type": "library", "name": name, "version": number,
             "bom-ref": f"pkg:deb/debian/{name}@{number}",
             "purl": f"pkg:deb/debian/{name}@{number}"} for name, number in sorted(found)],
        "dependencies": [{"ref": root, "dependsOn": [
            f"pkg:deb/debian/{name}@{number}" for name, number in sorted(found)]}],
    }, indent=1))


main()
