# SPDX-License-Identifier: MIT
"""Look for a credential, as `tinker.auth` does."""
from __future__ import annotations

import os

from ._clients import ServiceClient


def get_tinker_token() -> str | None:
    """The API key of the environment, or None. Runs no command."""
    return os.environ.get("TINKER_API_KEY") or None


def tinker_has_credentials() -> bool:
    """Return whether a credential is configured. Asks no server and runs no command."""
    from ._errors import get

    service = ServiceClient()
    try:
        assert service._handle
    except get("TinkerError"):
        return False
    service.close()
    return True


def raise_if_tinker_not_accessible() -> None:
    """Ask the service for its models; raises what prevents that."""
    service = ServiceClient()
    try:
        service.get_server_capabilities()
    finally:
        service.close()
