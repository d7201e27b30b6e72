#!/bin/sh
# A program outside of this tree builds against the installed library with what
# pkg-config says, and runs.
#
#   check_install.sh BUILD_DIR PREFIX shared|static
set -eu
build=$1
prefix=$2
kind=$3
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT INT TERM
meson install -C "$build" --no-rebuild --quiet --destdir "$stage"
pc=$(find "$stage" -name tnk.pc)
export PKG_CONFIG_PATH="${pc%/tnk.pc}${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"

cat >"$stage/program.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <tnk/tnk.h>

int main(void) {
  tnk_runtime_t *runtime;

  if (tnk_runtime_start(&runtime) != TNK_OK || tnk_runtime_stop(runtime) != TNK_OK)
    return 1;
  printf("%s\n", tnk_version());
  return strcmp(tnk_version(), TNK_VERSION_STRING) != 0;
}
END

ask() {
  pkg-config "--define-variable=prefix=$stage$prefix" "$@" tnk
}
if [ "$kind" = static ]; then
  set -- --static
else
  set --
fi
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -Wall -Wextra -Werror "$stage/program.c" -o "$stage/program" \
  $(ask "$@" --cflags --libs)
LD_LIBRARY_PATH=$(ask --variable=libdir) "$stage/program"
if [ "$kind" = static ] && ldd "$stage/program" | grep -q libtnk; then
  echo 'the static program still needs libtnk.so'
  exit 1
fi
