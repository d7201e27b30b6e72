#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs outside of this tree build against the installed libraries with
# find_package() of CMake, and run. A component or a version that is not installed
# is refused.
#
#   check_cmake.sh BUILD_DIR PREFIX shared|static
set -eu
build=$1
prefix=$2
kind=$3
command -v cmake >/dev/null || { echo 'skipped: there is no cmake'; exit 77; }
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 1' INT TERM HUP
meson install -C "$build" --no-rebuild --quiet --destdir "$stage"
cp "$(dirname "$0")/program.c" "$stage/"
cat >"$stage/gateway.c" <<'END'
#include <tnk/chat.h>
#include <tnk/gateway.h>
#include <tnk/tnk.h>

int main(void) {
  tnk_gateway_close(NULL, NULL, NULL);
  tnk_chat_free(NULL);
  return tnk_promise_status(NULL) != TNK_EINVAL;
}
END
cat >"$stage/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(outside C)
set(CMAKE_C_STANDARD 11)
find_package(tnk ${VERSION} COMPONENTS ${PARTS} REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE tnk::tnk)
add_executable(gateway gateway.c)
target_link_libraries(gateway PRIVATE tnk::gateway)
END

# configure VERSION PARTS
configure() {
  rm -rf "$stage/made"
  cmake -S "$stage" -B "$stage/made" "-DCMAKE_PREFIX_PATH=$stage$prefix" "-DVERSION=$1" "-DPARTS=$2" \
    >"$stage/log" 2>&1
}
# refused VERSION PARTS WORDS
refused() {
  if configure "$1" "$2"; then
    echo "version '$1' with '$2' was found"
    exit 1
  fi
  tr -s ' \n' '  ' <"$stage/log" | grep -q "$3" || { cat "$stage/log"; exit 1; }
}
configure 0.1 "chat;gateway;$kind" || { cat "$stage/log"; exit 1; }
cmake --build "$stage/made" >"$stage/log" 2>&1 || { cat "$stage/log"; exit 1; }
TINKER_API_KEY=tml-key TINKER_BASE_URL=http://127.0.0.1:1 "$stage/made/program"
"$stage/made/gateway"
if [ "$kind" = static ]; then
  if ldd "$stage/made/gateway" | grep -q libtnk; then
    echo 'the static program still needs the shared library'
    exit 1
  fi
  refused 0.1 'chat;shared' 'libtnk is not installed in'
else
  refused 0.1 'chat;static' 'libtnk is not installed in'
fi
refused 0.1 'chat;no-such' 'component no-such of tnk is not installed'
refused 0.2 chat 'compatible'
refused 1 chat 'compatible'
