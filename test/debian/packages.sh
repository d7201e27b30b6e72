#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds Debian packages of the last commit with .ci/debian in a new root of Debian
# 12 or 13, twice, and compares them. Then lintian checks them, they are installed,
# the test of .ci/debian/tests runs, and they are removed.
#
#   sh test/debian/packages.sh 12|13
#
# As bare.sh, which makes the root, it ends with 77 and a reason where that cannot
# be done.
set -eu
here=$(dirname "$0")
if [ "${1:-}" != inside ]; then
  exec sh "$here/bare.sh" "$1" sh test/debian/packages.sh inside
fi
export DEBIAN_FRONTEND=noninteractive
apt() { apt-get -y -qq --no-install-recommends "$@"; }
apt install build-essential lintian fakeroot >/dev/null
cp -r .ci/debian debian
apt build-dep ./ >/dev/null
# Two folders, as the path of a build must not matter.
for n in 1 2; do
  mkdir -p "/root/$n"
  cp -r . "/root/$n/tnk-source"
  (cd "/root/$n/tnk-source" && DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym" \
    dpkg-buildpackage -b -us -uc >"/root/$n/log" 2>&1) ||
    { tail -n 60 "/root/$n/log" && exit 1; }
done
cd /root
for package in 1/*.deb; do
  cmp "$package" "2/${package#1/}" || exit 1
done
echo "packages: two builds are equal: $(ls 1/*.deb | wc -l) packages"
lintian --allow-root --fail-on error,warning --suppress-tags \
  initial-upload-closes-no-bugs,bogus-mail-host-in-debian-changelog 1/*.changes
echo 'packages: lintian has nothing to say'
apt install ./1/*.deb >/dev/null
tnk version
apt install gcc libc6-dev pkgconf >/dev/null
(cd /root/tnk && AUTOPKGTEST_TMP=$(mktemp -d) sh debian/tests/hello)
apt purge tnk 'libtnk*' >/dev/null
left=$(find / -xdev \( -name '*libtnk*' -o -path '*/tnk/*' -o -name tnk \) \
  -not -path '/root/*' -not -path '/proc/*' -not -path '/var/lib/apt/*' | head)
[ -z "$left" ] || { echo "packages: left behind: $left" && exit 1; }
echo 'packages: installed, tested and removed'
