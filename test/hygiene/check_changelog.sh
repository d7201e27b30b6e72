#!/bin/sh
# SPDX-License-Identifier: MIT
# The changelog speaks of the version that is built.
set -eu
grep -q "^## $2" "$1/CHANGELOG.md" || { echo "CHANGELOG.md does not mention $2"; exit 1; }
