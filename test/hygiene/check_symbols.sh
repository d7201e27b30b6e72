#!/bin/sh
# Every global symbol of the library carries our prefix; a shared library
# exports none of the inside ones. DW.ref. are what C++ compilers add, hidden.
set -eu
case $1 in
*.so*) symbols=$(nm -D -g --defined-only "$1" | grep -E ' [ABCDGRSTV] ' | grep -vE ' tnk_[a-z]' || true) ;;
*) symbols=$(nm -A -g --defined-only "$1" | grep -E ' [ABCDGRSTV] ' | grep -vE ' (tnk_|llhttp_|tinker_public__|DW\.ref\.)' || true) ;;
esac
[ -z "$symbols" ] || { echo "$symbols"; exit 1; }
