#!/bin/sh
# From a fresh checkout to a trained adapter: installs what is missing (where
# there is apt), builds the command in the folder `build`, and trains the small
# model of the local server on examples/quickstart.jsonl.
#
#   sh examples/quickstart.sh [OPTION] ...   (of tnk train except --run, such as --steps 80)
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
run=$build/quickstart
# Without apt it names what it misses, and the build tells whether that matters.
sh "$top/test/install.sh" build || [ $? = 2 ]
# Configure and compile quietly, but show everything when it fails. -O3 would take
# some seconds more.
log=$top/build-quickstart.log
[ -x "$build/src/tools/tnk/tnk" ] || echo 'building ...' >&2
if ! { [ -f "$build/build.ninja" ] || meson setup "$build" "$top" --buildtype=release -Doptimization=2; } >"$log" 2>&1 ||
  ! ninja -C "$build" src/tools/tnk/tnk >>"$log" 2>&1; then
  cat "$log" >&2
  echo 'quickstart: the build failed; the lines above tell why' >&2
  exit 1
fi
rm -f "$log"
# The last run, which other options could not continue.
rm -rf "$run"
"$build/src/tools/tnk/tnk" train "$top/examples/quickstart.jsonl" --local --run "$run" \
  --steps 40 --batch 16 --sample 'What color is snow?' "$@"
"$build/src/tools/tnk/tnk" report "$run"
