# SPDX-License-Identifier: MIT
"""The types: those of the official client if it is installed, else compatible ones."""
from __future__ import annotations

import functools
from typing import Any

from . import _vendor


@functools.cache
def module() -> Any:
    """tinker.types, or tnk._compat_types."""
    found = _vendor.load("types")
    if found is None:
        from . import _compat_types

        return _compat_types
    return found


@functools.cache
def get(name: str) -> Any:
    return getattr(module(), name)
