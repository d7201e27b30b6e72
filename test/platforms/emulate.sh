#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds for another processor, and runs tests of base, policy, wire, chat and the
# tokenizers in qemu.
#
#   sh test/platforms/emulate.sh s390x|arm64|armhf|i386 [BUILD_DIR]
#
# The dependencies are Debian's packages for that processor, unpacked beside the
# build; nothing is installed. Ends with 77 and a reason where the cross compiler,
# the emulator or the packages are missing.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
case ${1:-} in
s390x) triple=s390x-linux-gnu cpu=s390x qemu=s390x endian=big ;;
arm64) triple=aarch64-linux-gnu cpu=aarch64 qemu=aarch64 endian=little ;;
armhf) triple=arm-linux-gnueabihf cpu=arm qemu=arm endian=little ;;
# The processor of this machine runs these too, but qemu has a library path of its
# own.
i386) triple=i686-linux-gnu cpu=x86 qemu=i386 endian=little folder=i386-linux-gnu ;;
*)
  echo 'usage: emulate.sh s390x|arm64|armhf|i386 [BUILD_DIR]' >&2
  exit 1
  ;;
esac
arch=$1
build=${2:-$top/build-$arch}
skip() {
  echo "skipped: $1"
  exit 77
}
command -v "$triple-gcc" >/dev/null || skip "crossbuild-essential-$arch is not installed"
folder=${folder:-$triple}
emulator=$(command -v "qemu-$qemu-static") || skip 'qemu-user-static is not installed'
command -v apt-get >/dev/null || skip 'there is no apt'
mkdir -p "$build/packages/partial" "$build/lists/partial" "$build/root"

# An apt of its own for that processor, so the machine's stays as it is.
apt() {
  apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
    -o APT::Sandbox::User=root -o Dir::State::lists="$build/lists" \
    -o Dir::State::status=/dev/null -o Dir::Cache="$build" "$@"
}
# Names of library packages depend on the release, so apt tells which ones the -dev
# packages need.
wanted='libuv1-dev libjansson-dev libmbedtls-dev libprotobuf-c-dev libzstd-dev
zlib1g-dev libnghttp2-dev'
if [ ! -f "$build/unpacked" ]; then
  # Some of the lists may be enough.
  apt update || echo "apt has not all lists for $arch"
  # shellcheck disable=SC2086 # several packages
  (cd "$build/packages" &&
    apt-cache -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
      -o Dir::State::lists="$build/lists" -o Dir::State::status=/dev/null \
      -o Dir::Cache="$build" depends --important $wanted |
    awk '/Depends: lib(uv1|jansson|mbed|protobuf-c|zstd|nghttp2)|Depends: zlib1g/ { print $2 }' |
      sort -u | cat - >../libraries && apt download $wanted $(cat ../libraries)) ||
    skip "the packages for $arch cannot be fetched"
  for package in "$build"/packages/*.deb; do dpkg -x "$package" "$build/root"; done
  touch "$build/unpacked"
fi

lib=$build/root/usr/lib/$folder
cat >"$build/cross.ini" <<END
[binaries]
c = '$triple-gcc'
ar = '$triple-ar'
strip = '$triple-strip'
pkgconfig = 'pkg-config'
pkg-config = 'pkg-config'
exe_wrapper = ['$emulator', '-L', '/usr/$triple', '-E', 'LD_LIBRARY_PATH=$lib:$build/root/lib/$folder']
[properties]
sys_root = '$build/root'
pkg_config_libdir = '$lib/pkgconfig'
[built-in options]
c_args = ['-isystem', '$build/root/usr/include']
c_link_args = ['-L$lib', '-Wl,-rpath-link,$lib:$build/root/lib/$folder']
[host_machine]
system = 'linux'
cpu_family = '$cpu'
cpu = '$cpu'
endian = '$endian'
END
cd "$top"
[ -f "$build/meson/build.ninja" ] ||
  CC_LD='' CXX_LD='' meson setup "$build/meson" --cross-file "$build/cross.ini" --werror \
    -Dtests=true -Dexamples=false
# shellcheck disable=SC2046 # several programs
ninja -C "$build/meson" $(ninja -C "$build/meson" -t targets all |
  grep -oE '^test/[^ ]*test_(base|flow|codec|chat|tokenizers)_[^ ]*: c_LINKER' | sed 's/: .*//')
export TNK_TEST_STRETCH=20
# shellcheck disable=SC2046 # several tests
meson test -C "$build/meson" --no-rebuild --print-errorlogs --timeout-multiplier 20 \
  --no-suite reference $(printf -- '--suite %s ' base flow codec chat tokenizers)
