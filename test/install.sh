#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, where there is apt (Debian, and what comes from it);
# elsewhere names what this machine lacks, and ends with 2.
#
#   sh test/install.sh [build | test | ci]
#
# build: what a build needs. test, the default: also what the tests need.
# ci: also what .ci/run uses beyond the README's commands.
set -eu
LC_ALL=C
export LC_ALL

# A line for each need: set | name in plain words | how to see that it is there
# where there is no apt | packages. Of `a/b` the first one that apt offers is
# taken, because releases name things differently; of `a/` none if there is no
# a. Packages behind `?` are left out if the need is met: Node often comes from
# elsewhere, and Debian's packages conflict with that. Debian has llhttp as a
# library from 13 on, and as C source before that.
needs='
build | a C and a C++ compiler | run c++ | gcc g++ libc6-dev
build | Meson 1.0 | run meson | dpkg-dev meson
build | Ninja | run ninja | ninja-build
build | pkg-config | run pkg-config | pkg-config
build | libuv 1.42 | library libuv >= 1.42 | libuv1-dev
build | Mbed TLS 2.28, or 3.6 | header mbedtls/ssl.h | libmbedtls-dev
build | llhttp 9.2, or the C source of 8.1 | header llhttp.h | libllhttp-dev/node-llhttp
build | jansson 2.13 | library jansson >= 2.13 | libjansson-dev
build | protobuf-c 1.4 | library libprotobuf-c >= 1.4 | libprotobuf-c-dev
build | the compiler of protobuf-c | run protoc-c | protobuf-c-compiler
build | zstd 1.5 | library libzstd >= 1.5 | libzstd-dev
build | zlib 1.2 | library zlib >= 1.2 | zlib1g-dev
build | nghttp2 1.43 (for HTTP/2 only) | library libnghttp2 >= 1.43 | libnghttp2-dev
build | hiredis 0.14 (for shared records only) | library hiredis >= 0.14 | libhiredis-dev
build | SQLite 3.7 (for projects of trackio only) | library sqlite3 >= 3.7 | libsqlite3-dev
build | SentencePiece (for its own models only) | library sentencepiece | libsentencepiece-dev
test | Python 3.9 | run python3 | python3
test | pycparser of Python (two tests only) | file /usr/lib/python3/dist-packages/pycparser | python3-pycparser
test | clang-format 14 (one test only) | run clang-format | clang-format-14/
test | certificate authorities | file /etc/ssl/certs | ca-certificates
ci | Node 18.17 with its headers | file /usr/include/node/node_api.h | ?nodejs libnode-dev/
ci | npm, which packs and installs a package | run npm | ?npm/
ci | Valgrind (two tests only) | run valgrind | valgrind
ci | TypeScript (one test only) | run tsc | ?node-typescript/
ci | clang with its sanitizers | run clang | clang libclang-rt-dev/libclang-rt-14-dev
ci | clang-tidy | run clang-tidy | clang-tidy
ci | abidiff | run abidiff | abigail-tools
ci | debootstrap | run debootstrap | debootstrap
ci | mold, which links faster | run mold | mold
ci | openssl | run openssl | openssl
ci | nginx | run nginx | nginx
ci | HAProxy | run haproxy | haproxy
ci | Hitch | run hitch | hitch
ci | nghttpx | run nghttpx | nghttp2-proxy
ci | Squid | run squid | squid
ci | Tinyproxy | run tinyproxy | tinyproxy
ci | a server of Valkey or Redis | run redis-server | redis-server/valkey-server
ci | promtool of Prometheus | run promtool | prometheus
ci | the headers of Python 3.11 (for its package only) | run python3-config | python3-dev
ci | PyYAML | file /usr/lib/python3/dist-packages/yaml | python3-yaml
ci | Lua 5.4 with its headers | file /usr/include/lua5.4/lua.h | ?lua5.4/ liblua5.4-dev/
ci | LuaJIT with its headers | file /usr/include/luajit-2.1/lua.h | ?luajit/ libluajit-5.1-dev/
ci | luv, libuv for Lua | file /usr/share/doc/lua-luv | lua-luv/
ci | Neovim | run nvim | ?neovim/
ci | zsh | run zsh | zsh
ci | fish | run fish | fish
'
case ${1:-test} in
build) sets=' build ' ;;
test) sets=' build test ' ;;
ci) sets=' build test ci ' ;;
*)
  echo 'usage: install.sh [build | test | ci]' >&2
  exit 1
  ;;
esac

# The lines that are asked for.
wanted() {
  echo "$needs" | while IFS='|' read -r set rest; do
    case $sets in *" ${set% } "*) echo "$rest" ;; esac
  done
}

# is_there HOW WHAT ...: whether a need is met, as far as can be seen.
is_there() {
  case $1 in
  run) command -v "$2" >/dev/null ;;
  file) [ -e "$2" ] ;;
  header) echo "#include <$2>" | ${CC:-cc} -E - >/dev/null 2>&1 ;;
  library) shift && pkg-config --exists "$*" 2>/dev/null ;;
  esac
}

if ! command -v apt-get >/dev/null; then
  missing=$(wanted | while IFS='|' read -r name how packages; do
    # shellcheck disable=SC2086 # a kind and its words
    is_there $how || echo " $name"
  done)
  [ -n "$missing" ] || exit 0
  cat >&2 <<END
not found here:
$missing
Install them the way this system does, libraries with their headers. What lies
in a folder of its own (FOLDER/include, FOLDER/lib) is found with
-Dlibrary_path=FOLDER; the README tells more.
END
  exit 2
fi

# The packages of the lines that are asked for, chosen by what apt offers now.
packages() {
  words=$(wanted | while IFS='|' read -r name how packages; do
    # shellcheck disable=SC2086 # a kind and its words
    case $packages in *\?*) is_there $how && continue ;; esac
    echo "${packages#*\?}"
  done)
  # shellcheck disable=SC2046 # several packages
  offered=$(apt-cache policy $(echo "$words" | tr ' /' '\n\n' | sort -u) |
    awk '/^[^ ]/ { name = $1 } /Candidate: [^(]/ { printf "%s ", substr(name, 1, length(name) - 1) }')
  for word in $words; do
    chosen=
    for name in $(echo "$word" | tr / ' '); do
      case " $offered" in *" $name "*) chosen=$name && break ;; esac
    done
    # What apt does not offer is for apt-get to complain of.
    case $word in */) ;; *) chosen=${chosen:-$name} ;; esac
    [ -z "$chosen" ] || echo "$chosen"
  done
}
missing() {
  for name in $(packages); do
    dpkg-query -W -f '${Status}\n' "$name" 2>/dev/null | grep -q 'ok installed' || echo "$name"
  done
}

[ -n "$(missing)" ] || exit 0
root=
if [ "$(id -u)" != 0 ]; then
  root=sudo
  command -v sudo >/dev/null || {
    echo "neither root nor sudo; as root: apt-get install $(missing | tr '\n' ' ')" >&2
    exit 1
  }
fi
# An unrelated source that cannot be reached need not stop us.
$root apt-get update -qq >&2 || echo 'apt-get update failed; trying all the same' >&2
missing=$(missing | tr '\n' ' ')
[ -n "$missing" ] || exit 0
echo "installing: $missing" >&2
# Debian's own configuration question must not wait for an answer.
# shellcheck disable=SC2086 # several packages
$root env DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends install $missing >&2
