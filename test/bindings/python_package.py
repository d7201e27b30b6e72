# SPDX-License-Identifier: MIT
"""The package of the source tree with the extension of the build, for programs of tests."""
import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

KEY = "tml-local"


def install(package, extension):
    """A folder with the package; programs that this process starts find it."""
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, True)
    shutil.copytree(package, folder / "tnk", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(extension, folder / "tnk" / "_native.abi3.so")
    # Once for all processes, and in one that is fast if this one runs under valgrind.
    subprocess.run([sys.executable, "-m", "compileall", "-q", folder / "tnk"], check=True)
    os.environ.update(no_proxy="*", TNK_TYPES="own", PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    return folder


def serve(tnk, *options):
    """A local server, which ends when its standard input does, and its address."""
    server = subprocess.Popen([tnk, "local", "--port", "0", "--exit-with-stdin", *options], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    return server, re.search(r"listening on (\S+)", server.stdout.readline())[1]


# What custom losses need of torch, for sums of logprobs.
TORCH = """
class Tensor:
    grad = None
    def __init__(self, values):
        self.values = values
    def tolist(self):
        return self.values
    def reshape(self, shape):
        return self
    clone = detach = lambda self: self
    def requires_grad_(self, _):
        return self
    def sum(self):
        return Sum(self, 1.0)
class Sum:
    def __init__(self, of, factor):
        self.of, self.factor = of, factor
    def __mul__(self, factor):
        return Sum(self.of, self.factor * factor)
    detach = sum = lambda self: self
    def item(self):
        return sum(self.of.values) * self.factor
    def backward(self):
        self.of.grad = Tensor([self.factor] * len(self.of.values))
tensor = Tensor
"""
