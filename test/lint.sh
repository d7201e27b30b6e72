#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs clang-tidy with the checks of .clang-tidy over src; a finding fails.
#
#   sh test/lint.sh BUILD_DIR [FILE ...]
#
# Without files all of src is looked at, but what a program has written. Ends
# with 77 and a reason where clang-tidy is missing. NODES=225000 follows as many
# paths of a function as the analyzer does by itself, in six times the time.
set -eu
build=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
command -v clang-tidy >/dev/null || {
  echo 'skipped: clang-tidy is not installed'
  exit 77
}
[ $# -gt 0 ] || set -- $(find src -name '*.c' ! -name 'tables.c' | sort)
# One file each, as many at a time as there are cores.
# What gcc alone understands in a command is no matter here.
if printf '%s\n' "$@" | xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" \
  clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option \
  --extra-arg=-Xclang --extra-arg=-analyzer-config \
  --extra-arg=-Xclang --extra-arg="max-nodes=${NODES:-15000}" \
  >"$build/lint.log" 2>/dev/null; then
  echo "lint: $# files without a finding"
else
  cat "$build/lint.log"
  echo 'lint: findings'
  exit 1
fi
