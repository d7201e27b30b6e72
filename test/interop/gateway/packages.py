# SPDX-License-Identifier: MIT
"""The environment of Python that the tests here share, with what they need of PyPI."""
import pathlib
import sys

import own_venv

PACKAGES = ["openai==3.54.0", "anthropic==2.12.0", "pydantic-ai-slim[openai,anthropic]==2.68.0"]


def enter(folder):
    """Go on in the environment of this folder, which a later run finds there. Out of reach: status
    77, with the reason."""
    try:
        own_venv.enter(pathlib.Path(folder) / "venv", *PACKAGES)
    except own_venv.Unreachable as e:
        print("skipped: the packages are out of reach:", e)
        sys.exit(77)
