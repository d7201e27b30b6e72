#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the libraries with other switches of the compiler, and runs tests of base,
# policy, wire, chat and the tokenizers with each.
#
#   sh test/platforms/switches.sh [SWITCH[+SWITCH ...] ...]
#
# Switches that are joined by + are for one build. Without any, each has a build of
# its own, in a folder build-SWITCH:
#
#   fortify    _FORTIFY_SOURCE=3: glibc checks the sizes of buffers
#   unsigned   char is unsigned, as on ARM
#   aliasing   warnings about aliasing and alignment are errors
#   trap       no optimization, and signed integers that overflow trap
#   lto        optimized at link time, with gcc's checks across files
#   analyzer   gcc's static analyzer; its warnings are errors, and no test runs.
#              Without two of its checks, of which each finding of gcc 12 was false:
#              it takes no account of bit fields, of vectors, and of lists and arrays
#              that cannot be empty. clang-tidy (test/lint.sh) has both checks.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
suites='base flow codec chat tokenizers'

# arguments SWITCH: what the compiler gets, for each of the joined switches.
arguments() {
  for part in $(echo "$1" | tr '+' ' '); do
    case $part in
    fortify) echo '-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3' ;;
    unsigned) echo '-funsigned-char' ;;
    aliasing) echo '-Wstrict-aliasing=3 -Wcast-align=strict -Wpointer-arith' ;;
    trap) echo '-O0 -ftrapv' ;;
    lto) ;;
    analyzer)
      echo '-fanalyzer -Wno-analyzer-use-of-uninitialized-value'
      echo '-Wno-analyzer-null-dereference'
      ;;
    *)
      echo "switches: there is no switch $part" >&2
      return 1
      ;;
    esac
  done
}
has() { case "+$1+" in *"+$2+"*) true ;; *) false ;; esac; }
# programs FOLDER: the programs of the suites.
programs() {
  ninja -C "$1" -t targets all |
    grep -oE "^test/[^ ]*test_($(echo "$suites" | tr ' ' '|'))_[^ ]*: c(pp)?_LINKER" | sed 's/: .*//'
}
# libraries FOLDER: the shared libraries.
libraries() {
  ninja -C "$1" -t targets all | grep -oE '^src/[^ ]*\.so[0-9.]*: c(pp)?_LINKER' | sed 's/: .*//'
}
one() {
  folder=build-$1
  lto=false
  ! has "$1" lto || lto=true
  [ -f "$folder/build.ninja" ] ||
    CC=${CC:-gcc} CXX=${CXX:-g++} meson setup "$folder" --werror -Dtests=true \
      -Dexamples=false -Db_lto=$lto "-Dc_args=$(arguments "$1" | xargs)"
  # shellcheck disable=SC2046 # several targets
  ninja -C "$folder" $(libraries "$folder")
  ! has "$1" analyzer || return 0
  # shellcheck disable=SC2046 # several targets
  ninja -C "$folder" $(programs "$folder")
  # shellcheck disable=SC2046 # several suites
  TNK_TEST_STRETCH=10 meson test -C "$folder" --no-rebuild --print-errorlogs \
    --timeout-multiplier 10 --no-suite reference $(printf -- '--suite %s ' $suites)
}

[ $# -gt 0 ] || set -- fortify unsigned aliasing trap lto analyzer
for switch; do
  arguments "$switch" >/dev/null
done
for switch; do
  echo "switches: $switch"
  one "$switch"
  echo "switches: $switch passed"
done
