# SPDX-License-Identifier: MIT
"""See the package."""


class Module:
    """For type checks of other packages; none is ever made."""
