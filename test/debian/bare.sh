#!/bin/sh
# SPDX-License-Identifier: MIT
# Pastes the README's two commands, and those that install the library, on a bare
# Debian: a root with the least that debootstrap makes, and in it a clean export of
# the last commit, or the source in the file TNK_TARBALL.
#
#   sh test/debian/bare.sh 12|13 [COMMAND ...]
#
# COMMAND ... is run in place of them, in the folder of the export. The files that
# TNK_FILES names are then in the folder /root/files. TEST_ARGS goes to the command
# that runs the tests. The folder TNK_ROOTS, if it is given, keeps what debootstrap has
# made, for the next call. Packages come from the mirror that this machine's apt uses.
# Nothing is left behind but what is told. Needs root; ends with 77 and a reason
# where it cannot be done.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
case ${1:-} in
12) release=bookworm ;;
13) release=trixie ;;
*)
  echo 'usage: bare.sh 12|13 [COMMAND ...]' >&2
  exit 1
  ;;
esac
shift
skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" = 0 ] || skip 'only root can make a root'
command -v debootstrap >/dev/null || skip 'debootstrap is not installed'
# In a space of its own, what is mounted and what still runs is gone at the end.
unshare --mount --pid --fork true 2>/dev/null || skip 'unshare is not permitted here'
git -C "$top" rev-parse -q --verify HEAD >/dev/null || skip 'this is no clone'

# The mirror from which this machine has its own packages.
mirror() {
  apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 ~ /^[a-z]+$/ { print $3; exit }'
}
mirror=$(mirror)
[ -n "$mirror" ] || { apt-get update -qq && mirror=$(mirror); }
[ -n "$mirror" ] || skip "apt has no mirror of Debian"

root=$(mktemp -d "${TMPDIR:-/var/tmp}/bare-$release.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
# apt and man-db work as other users in there.
chmod 755 "$root"
trap 'exit 1' INT TERM HUP

# make_root: as debootstrap leaves it.
make_root() {
  kept=${TNK_ROOTS:+$TNK_ROOTS/$release.tar}
  if [ -n "$kept" ] && [ -f "$kept" ]; then
    tar -x -p --numeric-owner -C "$root" -f "$kept"
    return
  fi
  unshare --mount debootstrap --variant=minbase "$release" "$root" "$mirror" >"$root.log" 2>&1 || {
    cat "$root.log"
    rm -f "$root.log"
    exit 1
  }
  rm -f "$root.log"
  [ -n "$kept" ] || return 0
  # The name is there once all of it is.
  tar -c --numeric-owner -C "$root" -f "$kept.$$" . && mv "$kept.$$" "$kept"
}
began=$(date +%s)
make_root
echo "bare: a root of Debian $release after $(($(date +%s) - began)) s"
cp /etc/resolv.conf "$root/etc/"
# Nobody reads manuals in there, or minds when power fails.
cat >"$root/etc/dpkg/dpkg.cfg.d/bare" <<'END'
force-unsafe-io
path-exclude /usr/share/locale/*
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
END
echo 'Acquire::Languages "none";' >"$root/etc/apt/apt.conf.d/bare"
mkdir "$root/root/tnk"
if [ -n "${TNK_TARBALL:-}" ]; then
  tar -x -C "$root/root/tnk" --strip-components=1 -f "$TNK_TARBALL"
else
  git -C "$top" archive HEAD | tar -x -C "$root/root/tnk"
fi
mkdir "$root/root/files"
# shellcheck disable=SC2086 # a list of names
[ -z "${TNK_FILES:-}" ] || cp $TNK_FILES "$root/root/files/"

# inside COMMAND ...: run it in the root, with an environment of its own.
inside() {
  echo "bare: $*"
  began=$(date +%s)
  unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" \
    chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${MESON_TESTTHREADS:+"MESON_TESTTHREADS=$MESON_TESTTHREADS"} \
    ${TEST_ARGS:+"TEST_ARGS=$TEST_ARGS"} \
    sh -c 'cd /root/tnk && exec "$@"' sh "$@" </dev/null
  echo "bare: done in $(($(date +%s) - began)) s"
}
# paste FILE START: run the block of shell in FILE that begins with START.
paste() {
  block=$(awk -v start="$2" '
    /^```sh$/ { is_in = 1; text = ""; next }
    /^```$/ { if (is_in && index(text, start) == 1) { printf "%s", text; exit }
              is_in = 0 }
    is_in { text = text $0 "\n" }' "$root/root/tnk/$1")
  [ -n "$block" ] || {
    echo "bare: $1 has no block that begins with: $2" >&2
    exit 1
  }
  inside sh -ec "$block"
}
if [ $# -gt 0 ]; then
  inside "$@"
else
  paste README.md 'sh examples/quickstart.sh'
  # The answer was learned, and the report is whole.
  inside python3 -c '
import json, pathlib
run = pathlib.Path("build/quickstart")
lines = [[json.loads(line) for line in (run / name).read_text().splitlines()] for name in ("metrics.jsonl", "samples.jsonl")]
loss = [line["train/loss"] for line in lines[0]]
assert loss[-1] < 0.6 * loss[0], loss
assert "white" in lines[1][-1]["text"] and "white" not in lines[1][0]["text"], lines[1]
assert (run / "report.html").read_text().rstrip().endswith("</html>")
print("the loss fell from", loss[0], "to", loss[-1])'
  # A reader has it; nothing that tnk needs brings it.
  inside apt-get -y -qq --no-install-recommends install sudo
  # They build and install the same; the second and the third have little to do.
  paste README.md 'sh test/install.sh build'
  paste examples/guides/installing.md 'sh test/install.sh build'
  paste examples/guides/tutorial.md 'sh test/install.sh build'
  inside tnk version
  inside sh -c 'cc -std=gnu11 examples/hello.c $(pkg-config --cflags --libs tnk libuv) -o /tmp/hello'
fi
