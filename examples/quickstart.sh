#!/bin/sh
# From a fresh checkout to a trained adapter: installs what is missing (where
# there is apt), builds the folder `build`, and runs examples/train_text with the
# arguments given.
#
#   sh examples/quickstart.sh [--steps N] [FILE] ...   (--help tells them all)
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
# Without apt it names what it misses, and the build tells whether that matters.
sh "$top/test/install.sh" build || [ $? = 2 ]
# Configure and compile quietly, but show everything when it fails.
log=$build.log
[ -x "$build/examples/train_text" ] || echo 'building ...' >&2
if ! { [ -f "$build/build.ninja" ] || meson setup "$build" "$top" --buildtype=release; } >"$log" 2>&1 ||
  ! ninja -C "$build" >>"$log" 2>&1; then
  cat "$log" >&2
  echo 'quickstart: the build failed; the lines above tell why' >&2
  exit 1
fi
rm -f "$log"
exec "$build/examples/train_text" "$@"
