#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing (where there is apt), builds, and runs every test.
#
#   sh test/run.sh [-c] [-b BUILD_DIR] [-n SUITES] [MESON_OPTION ...]
#
# -c only compiles; what comes later with the same options has that done already.
# -n "SUITE ..." neither compiles nor runs the tests of these suites.
# CC and CXX choose the compiler, TEST_ARGS holds arguments for `meson test`.
# Ends with "N passed, N failed".
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build-test
compiles_only=
if [ "${1:-}" = -c ]; then
  compiles_only=1
  shift
fi
if [ "${1:-}" = -b ]; then
  build=$2
  shift 2
fi
left=
if [ "${1:-}" = -n ]; then
  left=$2
  shift 2
fi
cd "$top" || exit 1
# Without apt it names what it misses, and the build tells whether that matters.
sh test/install.sh || [ $? = 2 ] || exit 1

[ -f "$build/build.ninja" ] || meson setup "$build" --werror -Dtests=true "$@" || exit 1
targets=
# shellcheck disable=SC2086 # several suites
[ -z "$left" ] || targets=$(python3 test/targets.py "$build" $left) || exit 1
# shellcheck disable=SC2086 # several targets
ninja -C "$build" $targets || exit 1
[ -z "$compiles_only" ] || exit 0
[ -z "$left" ] || TEST_ARGS="--no-rebuild $(printf -- '--no-suite %s ' $left) ${TEST_ARGS:-}"
# shellcheck disable=SC2086 # several arguments
meson test -C "$build" --print-errorlogs ${TEST_ARGS:-}
status=$?

# One line a suite is in the report; add them up. A program that dies between
# its checks is in none of them.
grep -o '<testsuite [^>]*>' "$build/meson-logs/testlog.junit.xml" | awk -F'"' -v status=$status '
  { for (i = 1; i < NF; i++) {
      if ($i ~ / tests=$/) t += $(i + 1)
      if ($i ~ / (errors|failures)=$/) f += $(i + 1)
      if ($i ~ / skipped=$/) s += $(i + 1) } }
  END { n = t - f - s
        if (status != 0 && f == 0) f = 1
        printf "%d passed, %d failed%s\n", n, f, s ? sprintf(", %d skipped", s) : "" }'
exit $status
