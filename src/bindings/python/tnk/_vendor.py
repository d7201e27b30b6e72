# SPDX-License-Identifier: MIT
"""The official package, if it is installed: its types and exceptions are used."""
from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from typing import Any


@functools.cache
def find() -> list[str] | None:
    """The folders of the package `tinker`, or None. TNK_TYPES=own ignores it."""
    if os.environ.get("TNK_TYPES") == "own":
        return None
    there = sys.modules.get("tinker")
    if there is not None and hasattr(there, "__path__"):
        return list(there.__path__) or None
    try:
        spec = importlib.util.find_spec("tinker")
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return list(spec.submodule_search_locations)


@functools.cache
def load(name: str) -> Any:
    """A module of the official package, or None if it is not installed."""
    if find() is None:
        return None
    return importlib.import_module("tinker." + name)
