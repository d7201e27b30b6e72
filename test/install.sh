#!/bin/sh
# Install the Debian packages that are missing. `sh test/install.sh build`
# asks only for what a build needs; without an argument also for the tests'.
set -eu
# meson asks dpkg-dev for the directory in which Debian looks for libraries.
build='gcc g++ libc6-dev dpkg-dev meson ninja-build pkg-config libuv1-dev libmbedtls-dev
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
command -v apt-get >/dev/null || {
  echo "not on Debian: install these packages by hand:$missing" >&2
  exit 1
}
root=
if [ "$(id -u)" != 0 ]; then
  root=sudo
  command -v sudo >/dev/null || {
    echo "neither root nor sudo; as root: apt-get install$missing" >&2
    exit 1
  }
fi
echo "installing:$missing" >&2
# An unrelated source that cannot be reached need not stop us.
$root apt-get update -qq >&2 || echo 'apt-get update failed; trying all the same' >&2
# Debian's own configuration question must not wait for an answer.
$root env DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends install $missing >&2
