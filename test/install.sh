#!/bin/sh
# Install the Debian packages that are missing. `sh test/install.sh build`
# asks only for what a build needs; without an argument also for the tests'.
set -eu
build='gcc g++ libc6-dev meson ninja-build pkg-config libuv1-dev libmbedtls-dev
  node-llhttp libjansson-dev libprotobuf-c-dev protobuf-c-compiler
  libsentencepiece-dev libzstd-dev'
test='clang libclang-rt-14-dev clang-format python3 python3-protobuf
  protobuf-compiler openssl ca-certificates sentencepiece'
want=$build
[ "${1:-test}" = build ] || want="$build $test"

missing=
for p in $want; do
  dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
command -v apt-get >/dev/null || { echo "missing:$missing" >&2; exit 1; }
root=
[ "$(id -u)" = 0 ] || root=sudo
echo "installing:$missing" >&2
$root apt-get update -qq
# Debian's own configuration question must not wait for an answer.
$root env DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends install $missing >&2
