#!/bin/bash
# A disk that is too small for normal use. mkfs and mount print warnings. A full disk can be emptied
# and used again.
#
#   small_disk_test.sh SILTFS [MEGABYTES]
set -euo pipefail

siltfs=$1
megabytes=${2:-40}
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

figure() { "$siltfs" stat --json "$1" | jq -e ".$2"; }
mount -t tmpfs -o "size=${megabytes}m,nr_inodes=0" siltfs-test "$disk"
# Checks for one warning. Other lines, such as advice about the kernel's settings, may stand beside it.
warned() {
  [[ $(grep '^siltfs: warning: ' "$work/err") == "siltfs: warning: $store: the disk has $megabytes.0 MiB, of which 16.0 MiB are kept for deleting files when it is full; a store needs a disk of 64.0 MiB at least to be of use [S0904]" ]] || fail "the warning is: $(cat "$work/err")"
}

step "mkfs refuses a disk on which a full store could not be emptied"
umount "$disk"
mount -t tmpfs -o size=31m,nr_inodes=0 siltfs-test "$disk"
code=0
"$siltfs" mkfs "$store" 2>"$work/err" || code=$?
((code == 1)) || fail "mkfs ends with $code: $(cat "$work/err")"
[[ $(cat "$work/err") == "siltfs: $store: the disk has 31.0 MiB, and a store needs a disk of 32.0 MiB at least; name a directory on a larger disk [S0504]" ]] || fail "mkfs says: $(cat "$work/err")"
[[ ! -e $store ]] || fail "mkfs left files behind"
umount "$disk"
mount -t tmpfs -o "size=${megabytes}m,nr_inodes=0" siltfs-test "$disk"

step "mkfs and mount each warn in one sentence"
"$siltfs" mkfs "$store" 2>"$work/err"
warned
mount_it 2>"$work/err"
warned

step "a large file fills the disk"
code=0
dd if=/dev/urandom of="$mnt/large" bs=1M count=60 2>"$work/err" || code=$?
((code == 1)) || fail "60 MB fit a disk of $megabytes"
grep -q 'No space left on device' "$work/err" || fail "dd says: $(cat "$work/err")"
echo "of the reserve $(figure "$mnt" reserve_bytes) bytes are left"
stored=$(figure "$mnt" stored_bytes)
((stored > 10000000)) || fail "only $stored bytes were stored"

step "deleting and gc free the space"
rm "$mnt/large"
"$siltfs" gc "$mnt"
(($(figure "$mnt" stored_bytes) < 3000000)) || fail "$(figure "$mnt" stored_bytes) bytes are stored"

step "the disk is filled and emptied several times"
for cycle in {1..10}; do
  dd if=/dev/urandom of="$mnt/large" bs=1M count=60 2>/dev/null && fail "60 MB fit a disk of $megabytes"
  rm "$mnt/large"
  "$siltfs" gc "$mnt" >/dev/null || fail "gc in cycle $cycle"
done
(($(figure "$mnt" index_bytes) < 6000000)) || fail "the index has $(figure "$mnt" index_bytes) bytes"

step "the disk is filled, the daemon killed, and the store mounted and emptied"
for cycle in 1 2; do
  dd if=/dev/urandom of="$mnt/large" bs=1M count=60 2>/dev/null && fail "60 MB fit a disk of $megabytes"
  kill -KILL -- -1 # kills all except this one, the first process of its namespace
  umount --lazy "$mnt"
  mount_it 2>/dev/null
  rm -f "$mnt/large"
  "$siltfs" gc "$mnt" >/dev/null || fail "gc after the kill in cycle $cycle"
  unmount_and_check
  mount_it 2>/dev/null
done

step "the store is unmounted, mounted and used"
unmount_and_check
mount_it 2>/dev/null
head -c 5M /dev/urandom >"$work/more"
cp "$work/more" "$mnt/more"
sync "$mnt/more"
unmount_and_check
mount_it 2>/dev/null
cmp "$work/more" "$mnt/more"
unmount_and_check

step "no warning for a disk of 64 MB"
umount "$disk"
mount -t tmpfs -o size=64m siltfs-test "$disk"
"$siltfs" mkfs "$store" 2>"$work/err"
[[ ! -s $work/err ]] || fail "mkfs says: $(cat "$work/err")"
