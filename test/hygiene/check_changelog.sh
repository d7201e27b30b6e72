#!/bin/sh
# SPDX-License-Identifier: MIT
# The changelog and all packages have the version that is built.
#
#   check_changelog.sh ROOT VERSION
set -eu
cd "$1"
status=0
while read -r file text; do
  grep -qF -- "$text" "$file" || {
    echo "$file does not have the version $2: expected $text"
    status=1
  }
done <<LIST
CHANGELOG.md ## $2
src/bindings/lua/tnk-$2-1.rockspec version = '$2-1'
src/bindings/node/package.json "version": "$2"
src/bindings/python/pyproject.toml version = "$2"
.ci/debian/changelog tnk ($2)
.ci/packages/alpine/APKBUILD pkgver=$2
.ci/packages/homebrew/tnk.rb tnk-$2.tar.xz
.ci/packages/vcpkg/vcpkg.json "version": "$2"
LIST
exit $status
