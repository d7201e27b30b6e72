# SPDX-License-Identifier: MIT
"""Takes the place of the machine-learning packages that TuFT imports.

They are several gigabytes. With TUFT_CPU_TEST=1 the server trains and samples with
models of its own that need none of them. Any name of these packages is an empty
class, which may be called, subclassed and subscripted.
"""
import importlib.abc
import importlib.machinery
import sys
import types

PACKAGES = {"torch", "ray", "peft", "transformers", "accelerate", "vllm"}


class Empty(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing

    def __getitem__(cls, _):
        return cls


class Nothing(metaclass=Empty):
    def __init__(self, *_, **__):
        pass


class Package(types.ModuleType):
    __version__ = "2.11.0"
    __path__ = []
    __file__ = __file__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in PACKAGES:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Package(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())
