#!/bin/sh
# SPDX-License-Identifier: MIT
# The official Python client against this project's server and client.
#
#   sh test/interop/run.sh [BUILD_DIR] [OPTION_OF_RUN_PY ...]
#
# The clients come from PyPI into a cache outside the tree, TNK_INTEROP_CACHE
# or ~/.cache/tnk-interop. Without PyPI everything is skipped, with a reason.
# Ends with "N passed, N failed[, N skipped]".
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
build=$top/build-test
case "${1:-}" in
'' | -*) ;;
*)
  build=$1
  shift
  ;;
esac
tnk=$build/src/tools/tnk/tnk
[ -x "$tnk" ] || { echo "no $tnk: build first" >&2; exit 1; }
cache=${TNK_INTEROP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tnk-interop}
exec python3 "$here/run.py" --tnk "$tnk" --driver "$build/test/interop/wire_tnk" \
  --cache "$cache" "$@"
