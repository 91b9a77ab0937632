#!/bin/bash
# A store on a read-only medium. Commands that only read work; commands that write report the cause
# of their failure.
#
#   read_only_medium_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

mount -t tmpfs -o size=200M siltfs-test "$disk"
make_and_mount
seq 100000 >"$mnt/numbers"
cp "$mnt/numbers" "$work/numbers"
unmount_and_check

contents() { (cd "$store" && find . -printf '%p %y %s %T@\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha1sum); }

reads() { # COMMAND...
  "$siltfs" "$@" >"$work/out" 2>&1 || fail "siltfs $* ends with $?: $(cat "$work/out")"
}
# Checks that the command prints exactly this sentence on standard error.
says() { # SENTENCE COMMAND...
  local code=0
  "$siltfs" "${@:2}" >"$work/out" 2>"$work/err" || code=$?
  ((code == 1)) || fail "siltfs ${*:2} ends with $code: $(cat "$work/out" "$work/err")"
  [[ $(cat "$work/err") == "siltfs: $store: the file system that the store is on is read-only; $1 [S0505]" ]] || fail "siltfs ${*:2} says: $(cat "$work/err")"
}

try_everything() {
  contents >"$work/before"
  reads stat "$store"
  reads stat --json "$store"
  reads index stat "$store"
  reads index verify "$store"
  reads index dump "$store"
  reads fsck -n "$store"
  reads fsck -n --data "$store"
  says "scrub records damage in the store; siltfs fsck --data verifies the same and writes nothing" scrub "$store"
  says "siltfs gc recovers the store and writes, also with --dry-run; siltfs stat shows the dead bytes as of the last count" gc --dry-run "$store"
  says "siltfs gc recovers the store and writes, also with --dry-run; siltfs stat shows the dead bytes as of the last count" gc "$store"
  says "settle rewrites segments and needs a writable one" settle "$store"
  says "mount it with -o ro" mount "$store" "$mnt"
  mount_it ro
  cmp "$work/numbers" "$mnt/numbers"
  "$siltfs" umount "$mnt"
  contents >"$work/after"
  cmp "$work/before" "$work/after" || fail "the store was changed"
}

step "a read-only file system"
mount -o remount,ro "$disk"
try_everything
mount -o remount,rw "$disk"

step "a read-only bind mount"
mount --bind "$disk" "$disk"
mount -o remount,bind,ro "$disk"
try_everything
umount "$disk"

step "a store without a lock file, which cannot be made on a read-only file system"
rm "$store/lock"
mount -o remount,ro "$disk"
try_everything
mount -o remount,rw "$disk"
"$siltfs" scrub "$store"
