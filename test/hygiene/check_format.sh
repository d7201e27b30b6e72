#!/bin/sh
# The style in .clang-format holds in every C file.
set -eu
cd "$1"
command -v clang-format >/dev/null || { echo 'skipped: clang-format is not installed'; exit 77; }
find src include test bench examples \( -name '*.[ch]' -o -name '*.cc' \) |
  xargs clang-format --dry-run --Werror
