#!/bin/sh
# SPDX-License-Identifier: MIT
# check_symbols.sh LIBRARY NODE [no-c++ [tnk]]
# Every global symbol of the library carries our prefix; a shared library
# exports none of the inside ones, and each under the version node NODE, so
# that a program says which library it was linked with. DW.ref. are what C++
# compilers add, hidden.
set -eu
case $1 in
*.so*) symbols=$(nm -D -g --defined-only "$1" | grep -E ' [ABCDGRSTV] ' |
  grep -vE " tnk_[a-z][a-z0-9_]*@@$2\$| A $2(@@$2)?\$" || true) ;;
*) symbols=$(nm -A -g --defined-only "$1" | grep -E ' [ABCDGRSTV] ' | grep -vE ' (tnk_|llhttp_|tinker_public__|DW\.ref\.)' || true) ;;
esac
[ -z "$symbols" ] || { echo "$symbols"; exit 1; }
# No library takes a function of another, unless a fourth argument says that it
# stands on them. With a third argument there is no C++ in it either, which needs
# symbols of its runtime.
case $1 in
*.so*) wanted=$(nm -D -u "$1") wants='tnk_' ;;
*) wanted=$(nm -A -u "$1") wants='' ;;
esac
[ -z "${4-}" ] || wants=
[ -z "${3-}" ] || wants="${wants:+$wants|}_Z|__gxx_|__cxa_throw|__cxa_begin_catch"
[ -n "$wants" ] || exit 0
found=$(echo "$wanted" | grep -E " U ($wants)" || true)
[ -z "$found" ] || { echo "$found"; exit 1; }
