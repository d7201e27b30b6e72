# SPDX-License-Identifier: MIT
"""The extension module. pkg-config finds the libraries of tnk. With TNK_ARCHIVE, an archive
that has all of them, only the libraries that they use are linked."""
import glob
import os
import pathlib
import subprocess
import sysconfig

from setuptools import Extension, setup

HERE = pathlib.Path(__file__).resolve().parent
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise SystemExit("tnk: a free-threaded build of Python has no stable ABI; use one with the lock")


PACKAGES = ["tnk", "tnk-chat", "tnk-gateway", "tnk-tokenizers"]
ARCHIVE = os.environ.get("TNK_ARCHIVE")


def pkg_config(*arguments):
    # The archive has no SentencePiece, which libtnk-tokenizers may need.
    static = ["--static"] if ARCHIVE else []
    packages = PACKAGES[:-1] if ARCHIVE else PACKAGES
    try:
        ran = subprocess.run([os.environ.get("PKG_CONFIG", "pkg-config"), *static, *arguments, *packages],
                             capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise SystemExit("tnk: pkg-config is needed to find libtnk") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"tnk: libtnk is not installed: {error.stderr.strip()}") from None
    return ran.stdout.split()


def include_folder():
    """A folder from which the sources find their header by its path in the repository."""
    folder = HERE / "build" / "include" / "bindings" / "python"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "native"
    if not link.exists():
        link.symlink_to(HERE / "native")
    return str(HERE / "build" / "include")


setup(
    ext_modules=[
        Extension(
            "tnk._native",
            sorted(glob.glob("native/*.c", root_dir=HERE)),
            include_dirs=[include_folder()],
            define_macros=[("Py_LIMITED_API", "0x030b0000"), ("PY_SSIZE_T_CLEAN", None), ("_POSIX_C_SOURCE", "200809L")],
            extra_compile_args=["-std=c11", "-fvisibility=hidden", *pkg_config("--cflags")],
            extra_link_args=[f"-Wl,--version-script={HERE / 'native.map'}", "-Wl,--exclude-libs,ALL", *pkg_config("--libs"), "-pthread"],
            extra_objects=[ARCHIVE] if ARCHIVE else [],
            depends=["native/native.h", "native.map"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
