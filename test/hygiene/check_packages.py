#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The files for packages of other systems agree with the build.

usage: check_packages.py ROOT

They have its version and, in names, what its soname changes with. They give each
feature of meson_options.txt a value, so that a package does not depend on what else the
builder has installed, and no option that is not there. They name each library that
a build needs (test/install.sh).
"""
import pathlib
import re
import sys

# Packages are made without these, and without what the tests need.
NOT_PACKAGED = {"docs"}
VERSIONS = {
    ".ci/debian/changelog": r"\Atnk \(([\d.]+)\)",
    ".ci/packages/alpine/APKBUILD": r"^pkgver=(\S+)",
    ".ci/packages/homebrew/tnk.rb": r"^  url \".*/tnk-([\d.]+)\.tar",
    ".ci/packages/vcpkg/vcpkg.json": r"^  \"version\": \"([\d.]+)\"",
    "src/bindings/node/package.json": r"^  \"version\": \"([\d.]+)\"",
    "src/bindings/python/pyproject.toml": r"^version = \"([\d.]+)\"",
}
# What has the options, and what has the libraries.
RECIPES = {
    "Debian": (".ci/debian/rules", ".ci/debian/control"),
    "Alpine": (".ci/packages/alpine/APKBUILD",) * 2,
    "Homebrew": (".ci/packages/homebrew/tnk.rb",) * 2,
    "vcpkg": (".ci/packages/vcpkg/portfile.cmake", ".ci/packages/vcpkg/vcpkg.json"),
}
# Some systems name the package otherwise than the module of pkg-config.
SHORT = {"sqlite3": "sqlite"}


def check(root):
    def text(name):
        return (root / name).read_text()

    version = re.search(r"^  version: '([\d.]+)'", text("meson.build"), re.M)[1]
    for name, pattern in VERSIONS.items():
        found = re.search(pattern, text(name), re.M)
        if found is None or found[1] != version:
            yield f"{name} is not of version {version}"
    major, minor = version.split(".")[:2]
    changes_with = f"0.{minor}" if major == "0" else major
    named = [p.name for p in (root / ".ci/debian").glob("libtnk*[0-9].*")]
    named += re.findall(r"libtnk[a-z-]*[\d.]*\d(?= |$)", text(".ci/debian/control"), re.M)
    if len(named) < 8:
        yield "check_packages looks at the wrong place"
    for name in named:
        if re.search(r"\d[\d.]*(?=\.[a-z]|$)", name)[0] != changes_with:
            yield f".ci/debian: the name {name} is not of soname {changes_with}"
    options = re.findall(r"^option\('(\w+)', type: '(\w+)'", text("meson_options.txt"), re.M)
    libraries = re.findall(r"^build \|.*\| (?:library|header) (?:lib)?([\w-]+)",
                           text("test/install.sh"), re.M)
    if len(options) < 5 or len(libraries) < 5:
        yield "check_packages looks at the wrong place"
    for system, (given, needed) in RECIPES.items():
        for name in re.findall(r"-D([a-z]\w*)=", text(given)):
            if name not in dict(options):
                yield f"{given}: there is no option {name}"
        for name, kind in options:
            if kind == "feature" and name not in NOT_PACKAGED and not re.search(
                    rf"(?<![a-z_]){name}\b", text(given)):
                yield f"{given}: no value for the feature {name}"
        for name in libraries:
            if SHORT.get(name, name) not in text(needed):
                yield f"{needed}: no {name}, which a build on {system} needs"


bad = list(check(pathlib.Path(sys.argv[1])))
print("\n".join(bad))
sys.exit(bool(bad))
