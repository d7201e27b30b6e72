# SPDX-License-Identifier: MIT
"""Puts this package in the place of the official module."""
from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from typing import Any

from . import _vendor

# Modules of the official package that hold its clients.
_REPLACED = ("", ".service_client", ".training_client", ".sampling_client", ".rest_client", ".admin_client",
             ".api_future", ".custom_loss")
VERSION = "0.38.0"


class _Module(types.ModuleType):
    """Has the names of the package `tnk`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        import tnk

        try:
            return getattr(tnk, name)
        except AttributeError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}, through tnk") from None


def _version() -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version("tinker")
    except importlib.metadata.PackageNotFoundError:
        return VERSION


def _module(name: str, path: list[str] | None) -> Any:
    made: Any = _Module(name)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=path is not None)
    if path is not None:
        made.__path__ = path
        made.__spec__.submodule_search_locations = path
    sys.modules[name] = made
    return made


def install() -> None:
    """From now on `import tinker` gives this package. Call it before the first import of
    `tinker`: what was imported by name before keeps the official classes."""
    import tnk
    from tnk import _types, auth

    if getattr(sys.modules.get("tinker"), "__tnk__", False):
        return
    folders = _vendor.find()
    made = _module("tinker", folders or [])
    made.__tnk__ = True
    made.__version__ = _version()
    made.__title__ = "tinker"
    made.auth = auth
    sys.modules["tinker.auth"] = auth
    if folders is None:
        _module("tinker.lib", [])
        sys.modules["tinker.types"] = _types.module()
    lib: Any = importlib.import_module("tinker.lib")
    made.lib = lib
    for name in _REPLACED:
        _module("tinker.lib.public_interfaces" + name, [] if name == "" else None)
    lib.public_interfaces = sys.modules["tinker.lib.public_interfaces"]
    for name in _REPLACED[1:]:
        setattr(lib.public_interfaces, name[1:], sys.modules["tinker.lib.public_interfaces" + name])
    made.__all__ = [name for name in tnk.__all__ if name not in ("install", "__version__", "Ledger")]
    made.types = _types.module()
