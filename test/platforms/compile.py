#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compile the library and the command for other systems, without linking them.

usage: compile.py [TARGET ...] [--build FOLDER]

The compiler is zig, which brings the headers of each system and comes from PyPI.
The headers of the dependencies are the ones that are installed here. Each target
has a build folder of its own, which Meson configures as for any other cross
build; so the tests of meson.build run too. Nothing is linked, because there are
no libraries of the dependencies. Ends with 77 and a reason where zig cannot be
installed or where a header is missing.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
# Target: the names that Meson has for the system, the processor, its family.
TARGETS = {
    "aarch64-macos": ("darwin", "aarch64", "aarch64"),
    "x86_64-freebsd": ("freebsd", "x86_64", "x86_64"),
    "x86_64-linux-musl": ("linux", "x86_64", "x86_64"),
}
# Dependency: its headers and folders of headers.
HEADERS = {
    "libuv": ["uv.h", "uv"],
    "jansson": ["jansson.h", "jansson_config.h"],
    "libprotobuf-c": ["protobuf-c"],
    "libzstd": ["zstd.h", "zstd_errors.h"],
    "zlib": ["zlib.h", "zconf.h"],
    "libnghttp2": ["nghttp2"],
    "mbedtls": ["mbedtls", "psa"],
    "sentencepiece": ["sentencepiece_processor.h"],
}
# Mbed TLS has three libraries and, up to 3.5, no pkg-config files.
NAMES = {"mbedtls": ["mbedtls", "mbedx509", "mbedcrypto"]}
VERSION_HEADER = {"mbedtls": ("mbedtls/build_info.h", "mbedtls/version.h")}
ZIG = "0.17.1"

COMPILER = """#!/bin/sh
# Meson 1.0 asks the linker for its name and does not know the one of zig.
for arg in "$@"; do
  case $arg in -Wl,--version) echo 'LLD 17.0.0 (compatible with GNU linkers)' && exit 0 ;; esac
done
exec '{zig}' {command} -target {target} "$@"
"""
CROSS = """[binaries]
c = '{bin}/cc'
cpp = '{bin}/c++'
ar = '{bin}/ar'
strip = 'true'
pkgconfig = '{pkg_config}'
pkg-config = '{pkg_config}'
[properties]
pkg_config_libdir = '{pc}'
[host_machine]
system = '{system}'
cpu_family = '{family}'
cpu = '{cpu}'
endian = 'little'
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def zig_of(folder):
    """The compiler, installed into an environment in the folder."""
    venv = folder / "venv"
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    got = subprocess.run([python, "-m", "pip", "install", "-q", f"ziglang=={ZIG}"],
                         capture_output=True, text=True)
    if got.returncode != 0:
        skip(f"pip cannot install ziglang {ZIG}: {got.stderr.strip().splitlines()[-1]}")
    found = subprocess.run([python, "-c", "import ziglang; print(ziglang.__path__[0])"],
                           capture_output=True, text=True, check=True)
    return pathlib.Path(found.stdout.strip()) / "zig"


def version_of(name, folder):
    """The version that pkg-config or the headers tell."""
    got = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True)
    if got.returncode == 0:
        return got.stdout.strip()
    for header in VERSION_HEADER.get(name, ()):
        if (folder / header).exists():
            text = (folder / header).read_text()
            found = re.search(r'_VERSION_STRING\s+"([\d.]+)"', text)
            if found:
                return found[1]
    return skip(f"the version of {name} is unknown")


def gather_headers(folder):
    """Headers and pkg-config files of the dependencies, apart from those of the system."""
    include = folder / "include"
    pc = folder / "pkgconfig"
    for path in (include, pc):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    places = [pathlib.Path("/usr/include"), pathlib.Path("/usr/local/include"),
              pathlib.Path("/usr/include") / (sysconfig.get_config_var("MULTIARCH") or "")]
    for name, headers in HEADERS.items():
        for header in headers:
            place = next((p for p in places if (p / header).exists()), None)
            if place is None:
                skip(f"{header} of {name} is not installed")
            (shutil.copytree if (place / header).is_dir() else shutil.copy)(
                place / header, include / header)
        for library in NAMES.get(name, [name]):
            (pc / f"{library}.pc").write_text(
                f"Name: {library}\nDescription: headers alone\n"
                f"Version: {version_of(name, include)}\nCflags: -isystem {include}\n")
    return pc


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def configure(target, folder, zig, pc):
    """A build folder for the target."""
    tools = folder / target / "bin"
    build = folder / target / "build"
    tools.mkdir(parents=True, exist_ok=True)
    program(tools / "cc", COMPILER.format(zig=zig, command="cc", target=target))
    program(tools / "c++", COMPILER.format(zig=zig, command="c++", target=target))
    program(tools / "ar", f"#!/bin/sh\nexec '{zig}' ar \"$@\"\n")
    system, cpu, family = TARGETS[target]
    cross = folder / target / "cross.ini"
    cross.write_text(CROSS.format(bin=tools, pc=pc, system=system, cpu=cpu, family=family,
                                  pkg_config=shutil.which("pkg-config")))
    shutil.rmtree(build, ignore_errors=True)
    subprocess.run(["meson", "setup", build, TOP, "--cross-file", cross, "--werror",
                    "-Ddefault_library=static", "-Dexamples=false", "-Doptimization=1",
                    "-Ddebug=false"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "CC_LD": "", "CXX_LD": ""})
    return build


def compile_all(build):
    """Compile each object; tells how many there are and whether all compiled."""
    got = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"],
                         capture_output=True, text=True, check=True)
    objects = re.findall(r"^(\S+\.o): c(?:pp)?_COMPILER", got.stdout, re.M)
    done = subprocess.run(["ninja", "-C", build, "-k", "0", "--quiet", *objects])
    return len(objects), done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET",
                        help=", ".join(TARGETS))
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build-platforms")
    args = parser.parse_args()
    for target in args.targets:
        if target not in TARGETS:
            parser.error(f"unknown target {target}")
    folder = args.build.resolve()
    folder.mkdir(exist_ok=True)
    zig = zig_of(folder)
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = str(folder / "cache")
    pc = gather_headers(folder)
    failed = []
    for target in args.targets:
        began = time.monotonic()
        n, is_good = compile_all(configure(target, folder, zig, pc))
        print(f"{target}: {n} objects, {'all compile' if is_good else 'FAILED'}"
              f" ({time.monotonic() - began:.0f} s)", flush=True)
        if not is_good:
            failed.append(target)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
