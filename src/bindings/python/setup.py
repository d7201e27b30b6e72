# SPDX-License-Identifier: MIT
"""The extension module. pkg-config finds libtnk; TNK_STATIC=1 links its archive."""
import glob
import os
import pathlib
import subprocess
import sysconfig

from setuptools import Extension, setup

HERE = pathlib.Path(__file__).resolve().parent
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise SystemExit("tnk: a free-threaded build of Python has no stable ABI; use one with the lock")


def pkg_config(*arguments):
    static = ["--static"] if os.environ.get("TNK_STATIC") else []
    try:
        ran = subprocess.run([os.environ.get("PKG_CONFIG", "pkg-config"), *static, *arguments, "tnk"],
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
            define_macros=[("Py_LIMITED_API", "0x030b0000"), ("_POSIX_C_SOURCE", "200809L")],
            extra_compile_args=["-std=c11", "-fvisibility=hidden", *pkg_config("--cflags")],
            extra_link_args=[f"-Wl,--version-script={HERE / 'native.map'}", *pkg_config("--libs"), "-pthread"],
            depends=["native/native.h", "native.map"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
