#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian packages of the last commit, and those of the same source under
# the next incompatible version, and installs the libraries of both in one root of
# Debian 12 or 13. A program of each version, and one that loads both, must run with
# what belongs to its version. Then the first version is removed, and the programs of
# the second must still run.
#
#   sh test/debian/versions.sh 12|13
#
# As bare.sh, which makes the root, it ends with 77 and a reason where that cannot
# be done.
set -eu
here=$(dirname "$0")
if [ "${1:-}" != inside ]; then
  exec sh "$here/bare.sh" "$1" sh test/debian/versions.sh inside
fi
export DEBIAN_FRONTEND=noninteractive
apt() { apt-get -y -qq --no-install-recommends "$@"; }
first=$(sed -n "s/^ *version: '\([0-9]*\.[0-9]*\)\..*',/\1/p" meson.build | head -n 1)
second=${first%.*}.$((${first#*.} + 1))
model=$PWD/test/tokenizers/data/sp_bpe.model
work=/root/versions
mkdir "$work"

# source_of VERSION: a folder with its source, and into that folder.
source_of() {
  mkdir "$work/$1"
  cp -r . "$work/$1/source"
  cd "$work/$1/source"
  rm -rf debian
  cp -r .ci/debian debian
  if [ "$1" = "$second" ]; then
    for file in debian/*"$first".*; do
      mv "$file" "$(echo "$file" | sed "s/$first\./$second./")"
    done
    sed -i "s/$first/$second/g" debian/control debian/changelog debian/*.install debian/*.symbols
    sed -i "/^ *version: '/s/$first/$second/" meson.build
    sed -i "s/\"$first\./\"$second./; s/\(VERSION_MINOR\) .*/\1 ${second#*.}/" include/tnk/version.h
    find src -name '*.map' -exec sed -i "s/TNK_$first/TNK_$second/" {} +
  fi
}
# build VERSION: its packages.
build() (
  source_of "$1"
  DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym noopt nocheck" \
    dpkg-buildpackage -b -us -uc >../log 2>&1 || { tail -n 60 ../log && exit 1; }
)
apt install build-essential fakeroot >/dev/null
cp -r .ci/debian debian
apt build-dep ./ >/dev/null
rm -rf debian
build "$first"
build "$second"

# The files of this version that the process has mapped, one in a line.
cat >"$work/one.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <tnk/chat.h>
#include <tnk/gateway.h>
#include <tnk/tnk.h>
#include <tnk/tokenizers.h>

int main(int argc, char **argv) {
  tnk_tokenizer_error_t error = {0};
  tnk_tokenizer_t *tok = NULL;
  char line[4096];
  FILE *maps;

  if (argc < 2 || tnk_tokenizer_load(&tok, argv[1], NULL, &error) < 0) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  tnk_chat_template_unref(NULL);
  tnk_gateway_close(NULL, NULL, NULL);
  printf("version %s\n", tnk_version());
  maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
    if (strstr(line, "r-xp") != NULL && strstr(line, "tnk-") != NULL)
      fputs(strchr(line, '/'), stdout);
  tnk_tokenizer_unref(tok);
  return 0;
}
END
cat >"$work/both.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <tnk/tokenizers.h>

/* Loads the model of the first argument with each of the libraries behind it. */
int main(int argc, char **argv) {
  char line[4096];
  FILE *maps;

  for (int i = 2; i < argc; i++) {
    int (*load)(tnk_tokenizer_t **, const char *, const tnk_tokenizer_options_t *,
                tnk_tokenizer_error_t *);
    void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    tnk_tokenizer_error_t error = {0};
    tnk_tokenizer_t *tok = NULL;

    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    *(void **)&load = dlsym(library, "tnk_tokenizer_load");
    if (load(&tok, argv[1], NULL, &error) < 0) {
      fprintf(stderr, "%s: %s\n", argv[i], error.text);
      return 1;
    }
  }
  maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
    if (strstr(line, "r-xp") != NULL && strstr(line, "tnk-") != NULL)
      fputs(strchr(line, '/'), stdout);
  return 0;
}
END
fail() {
  echo "versions: $1"
  exit 1
}
compile() {
  # shellcheck disable=SC2046 # several options
  cc -std=gnu11 "$work/$1.c" -Wl,--no-as-needed \
    $(pkg-config --cflags --libs tnk tnk-tokenizers tnk-chat tnk-gateway libuv) -o "$work/$2"
}
# check PROGRAM VERSION: it says this version, and uses no file of another.
check() {
  "$work/$1" "$model" >"$work/out" || fail "the program of $2 failed"
  cat "$work/out"
  grep -q "^version $2\." "$work/out" || fail "the program of $2 has another version"
  [ "$(grep -c "$2" "$work/out")" = 5 ] ||
    fail "the program of $2 has not four files of it"
  [ "$(wc -l <"$work/out")" = 5 ] || fail "the program of $2 has a file of another version"
}
apt install gcc libc6-dev pkgconf >/dev/null
apt install "$work/$first"/libtnk*.deb >/dev/null
compile one "one-$first"
# The development files are those of one version; of the libraries, both stay.
apt install "$work/$second"/libtnk*.deb >/dev/null
for library in libtnk libtnk-tokenizers libtnk-chat libtnk-gateway; do
  for version in "$first" "$second"; do
    dpkg-query -W -f '${Status}\n' "$library$version" | grep -qx 'install ok installed' ||
      fail "$library$version is not installed"
  done
done
echo "versions: the libraries of $first and $second are installed"
compile one "one-$second"
# shellcheck disable=SC2046 # several options
cc -std=gnu11 "$work/both.c" $(pkg-config --cflags tnk-tokenizers) -ldl -o "$work/both"
check "one-$first" "$first"
check "one-$second" "$second"
"$work/both" "$model" "libtnk-tokenizers.so.$first" "libtnk-tokenizers.so.$second" >"$work/out" ||
  fail 'a program with both versions failed'
cat "$work/out"
for version in "$first" "$second"; do
  [ "$(grep -c "$version" "$work/out")" = 2 ] ||
    fail "a program with both versions has not the module of $version"
done
apt purge "libtnk*$first" >/dev/null
[ -z "$(find /usr/lib -name "*tnk*$first*")" ] || fail "files of $first are left behind"
check "one-$second" "$second"
! "$work/one-$first" "$model" 2>/dev/null || fail "the program of $first runs without its library"
echo "versions: $first is removed, and $second runs"
