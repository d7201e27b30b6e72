#!/bin/sh
# SPDX-License-Identifier: MIT
# A project that has this tree as its subproject, without a network, gets the
# library that it asks for and nothing else of it, and a library that lies in a folder comes
# before the system's: here jansson, as an archive. One that is too old is
# refused. Built without HTTP/2 it needs no nghttp2.
#
#   check_subproject.sh ROOT
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

mkdir -p "$work/subprojects/tnk" "$work/folder/include" "$work/folder/lib" "$work/old/lib"
for part in include src subprojects meson.build meson_options.txt; do
  cp -R "$root/$part" "$work/subprojects/tnk/"
done
headers=$(pkg-config --variable=includedir jansson)
cp "$headers/jansson.h" "$headers/jansson_config.h" "$work/folder/include/"
archive=$(pkg-config --variable=libdir jansson)/libjansson.a
[ -f "$archive" ] || { echo 'skipped: there is no archive of jansson'; exit 77; }
cp "$archive" "$work/folder/lib/"
cp -R "$work/folder/include" "$work/old/"
cp "$archive" "$work/old/lib/"
sed 's/define JANSSON_MINOR_VERSION .*/define JANSSON_MINOR_VERSION 9/
  s/define JANSSON_VERSION_HEX .*/define JANSSON_VERSION_HEX 0x020900/' \
  "$headers/jansson.h" >"$work/old/include/jansson.h"

cat >"$work/meson.build" <<'END'
project('program', 'c', default_options: ['c_std=gnu11'])
executable('program', 'program.c',
  dependencies: [dependency('tnk', fallback: 'tnk'), dependency('libuv')])
END
cp "$root/test/hygiene/program.c" "$work/"

fail() {
  echo "$1"
  exit 1
}
set_up() {
  build=$1
  shift
  meson setup "$work/$build" "$work" --wrap-mode=nodownload -Dtnk:tests=true \
    -Dtnk:libraries= -Dtnk:http2=disabled -Ddefault_library=static -Doptimization=0 -Ddebug=false "$@" >"$work/log" 2>&1
}
set_up build-old "-Dtnk:library_path=$work/old" && fail 'jansson 2.9 was taken'
grep -q 'jansson in .* is too old' "$work/log" || { cat "$work/log"; exit 1; }

set_up build "-Dtnk:library_path=$work/none,$work/folder" || { cat "$work/log"; exit 1; }
ninja -C "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
TINKER_API_KEY=tml-key TINKER_BASE_URL=http://127.0.0.1:1 "$work/build/program"

made=$(find "$work/build" -name meson-private -prune -o -type f \
  \( -perm -u+x -o -name '*.a' -o -name '*.so*' \) -print | sed 's,.*/,,' | sort | tr '\n' ' ')
case $made in
'libtnk.a program ' | 'libllhttp.a libtnk.a program ') ;;
*) fail "these were built: $made" ;;
esac
nm "$work/build/program" | grep -q ' [Tt] json_loadb$' || fail 'jansson is not that of the folder'
ldd "$work/build/program" | grep -q nghttp2 && fail 'nghttp2 is needed'
DESTDIR=$work/stage meson install -C "$work/build" --no-rebuild --quiet
for name in tokenizers chat gateway; do
  [ -z "$(find "$work/stage" -name "$name.h" -o -name "tnk-$name.pc")" ] || fail "$name is installed without its library"
done
[ -n "$(find "$work/stage" -name service.h)" ] || fail 'the headers are not installed'
