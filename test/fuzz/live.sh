#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs every fuzz target for a moment, on inputs made from its corpus:
#
#   sh test/fuzz/live.sh [SECONDS [BUILD_DIR]]
#
# SEED, 1 unless it is set, decides which: a finding comes again with the same
# one, and SEED=0 takes other inputs each time.
#
# SECONDS, 60 unless told otherwise, are of processor time and for all targets
# together. What breaks one is kept in BUILD_DIR, by default build-fuzz, which
# is built with clang; the README here tells what to do with it.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:-60}
build=${2:-$top/build-fuzz}
cd "$top"
[ -f "$build/build.ninja" ] || CC=clang CXX=clang++ meson setup "$build" -Dtests=true \
  -Dfuzzing=libfuzzer -Db_sanitize=address,undefined -Db_lundef=false -Dexamples=false \
  -Doptimization=1 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1
targets=
for name in $(cd test/fuzz && echo fuzz_*.c | sed 's/\.c//g'); do
  # What needs a library that is not here is not built.
  if ninja -C "$build" -t query "test/fuzz/$name" >/dev/null 2>&1; then
    targets="$targets${targets:+ }$name"
  else
    echo "skipped: $name is not in this build"
  fi
done
# shellcheck disable=SC2046 # several targets
ninja -C "$build" $(printf 'test/fuzz/%s ' $targets)

n=$(echo "$targets" | wc -w)
each=$(((seconds + n - 1) / n))
mkdir -p "$build/new"
export build each
# Two at a time, each with a folder of its own for what it finds.
# shellcheck disable=SC2016 # for the shell inside
echo "$targets" | tr ' ' '\n' | xargs -P 2 -I '{}' sh -c '
  name=$1
  case $name in fuzz_tokenizer_*) length=20000 ;; *) length=4096 ;; esac
  mkdir -p "$build/new/$name"
  if "$build/test/fuzz/$name" -max_len=$length -seed=${SEED:-1} -max_total_time=$each -rss_limit_mb=4096 \
    -artifact_prefix="$build/new/$name-" "$build/new/$name" "test/fuzz/corpus/${name#fuzz_}" \
    >"$build/new/$name.log" 2>&1; then
    echo "ok - $name: $(sed -n "s/^Done \([0-9]* runs\).*/\1/p" "$build/new/$name.log")"
  else
    tail -40 "$build/new/$name.log"
    echo "not ok - $name"
    exit 1
  fi' sh '{}' && status=0 || status=1
if [ $status = 0 ]; then
  echo "fuzz: $n targets, $each s each, without a finding"
else
  echo "fuzz: findings; the files are in $build/new"
fi
exit $status
