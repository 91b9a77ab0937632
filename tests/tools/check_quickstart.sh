#!/usr/bin/env bash
# check_quickstart.sh SOURCE-DIRECTORY PROGRAM: tools/quickstart uses an installed siltfs, shows what
# the disk holds, part by part, and leaves nothing. Its build of the source is not tested here. Needs
# /dev/fuse.
set -euo pipefail

source=$1 siltfs=$2
# The mount is in a namespace of its own: a test that begins at the same time in another namespace would
# keep a copy of a mount outside, and umount would fail.
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/../posix/store_fixture.sh"
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  cat "$work/output" >&2
  exit 1
}

mkdir "$work/bin" "$work/tmp"
ln -s "$siltfs" "$work/bin/siltfs"
# A failure here would otherwise begin a build.
printf '#!/bin/sh\necho "$0 was called" >&2\nexit 1\n' >"$work/bin/cmake"
chmod 755 "$work/bin/cmake"
PATH=$work/bin:$PATH TMPDIR=$work/tmp "$source/tools/quickstart" --once --megabytes 8 >"$work/output" 2>&1 ||
  fail "tools/quickstart"

grep -q "^== Using the installed $work/bin/siltfs (siltfs [0-9.]*)\$" "$work/output" || fail "it does not name the program"
! grep -q Building "$work/output" || fail "it has built siltfs"
grep -q '^Both copies are equal' "$work/output" || fail "it has compared nothing"
awk '
  $3 != "MiB" { next }
  $1 ~ /^(data|metadata|index|reserve|other)$/ { part[$1] = $2; sum += $2; ++parts }
  $1 == "total" && parts == 5 && !total { total = $2 }
  END {
    if (parts != 5) { print parts " parts instead of 5"; exit 1 }
    if (total - sum > 0.3 || sum - total > 0.3) { print "the parts have " sum " MiB, the total is " total; exit 1 }
    if (part["data"] < 0.5 || part["metadata"] <= 0 || part["reserve"] < 1 || part["other"] > 1) {
      print "a part has an unlikely size"; exit 1
    }
  }' <(sed -n '/^The disk holds/,$p' "$work/output") || fail "the parts of the disk's space"
(($(grep -c '^The reserve is free space' "$work/output") == 1)) || fail "it does not explain the reserve"
mounted=$(awk '$1 == "total" {size = $2} END {print size}' "$work/output")
unmounted=$(sed -n 's/^Unmounted, the whole store takes \([0-9.]*\) MiB.*/\1/p' "$work/output")
awk -v a="$unmounted" -v b="$mounted" 'BEGIN { exit !(a > 0 && a < b) }' ||
  fail "the unmounted store takes \"$unmounted\" MiB, the mounted one took \"$mounted\" MiB"
[[ -z $(ls -A "$work/tmp") ]] || fail "it leaves files: $(ls -A "$work/tmp")"
! grep -q " $work" /proc/self/mounts || fail "it leaves a mount"
echo "all well"
