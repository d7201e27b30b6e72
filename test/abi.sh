#!/bin/sh
# SPDX-License-Identifier: MIT
# Tells what changed in the binary interface of the libraries since a commit.
#
#   sh test/abi.sh [REV]
#
# Builds REV (the last tag if there is one, else the commit before this one) and
# this tree as it is, and compares the two with abidiff, for the types that the
# public headers show. Ends with 0 whatever changed: before version 1.0 a minor
# version may change anything. Ends with 77 and a reason where it cannot be done.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
skip() {
  echo "skipped: $1"
  exit 77
}
command -v abidiff >/dev/null || skip 'abidiff is not installed'
rev=${1:-$(git describe --tags --abbrev=0 2>/dev/null || echo HEAD~1)}
name=$(git rev-parse -q --verify --short "$rev^{commit}") || skip "there is no commit $rev here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# build SOURCE BUILD_DIR: only the libraries, with what a debugger needs.
build() {
  { meson setup "$2" "$1" -Doptimization=0 -Ddebug=true -Dcli=false -Dexamples=false &&
    ninja -C "$2"; } >"$work/log" 2>&1
}
mkdir "$work/old"
git archive "$name" | tar -x -C "$work/old"
build "$work/old" "$work/old-build" || skip "$name does not build"
build "$top" "$work/new-build" || {
  cat "$work/log"
  exit 1
}

for library in src/libtnk.so src/tokenizers/libtnk-tokenizers.so src/chat/libtnk-chat.so src/gateway/libtnk-gateway.so; do
  if [ ! -e "$work/old-build/$library" ] || [ ! -e "$work/new-build/$library" ]; then
    echo "abi: ${library##*/} is not in both"
    continue
  fi
  status=0
  abidiff --headers-dir1 "$work/old/include" --headers-dir2 "$top/include" \
    --drop-private-types "$work/old-build/$library" "$work/new-build/$library" \
    >"$work/report" 2>&1 || status=$?
  cat "$work/report"
  # The bits of its status: 1 and 2 an error, 4 a change, 8 one that breaks.
  [ $((status & 3)) = 0 ] || exit 1
  if [ $((status & 8)) != 0 ]; then
    echo "abi: ${library##*/}: programs built with $name do not run with this tree"
  elif [ $((status & 4)) != 0 ]; then
    echo "abi: ${library##*/}: changed since $name; look whether old programs run with it"
  else
    echo "abi: ${library##*/}: nothing that was in $name has changed"
  fi
done
