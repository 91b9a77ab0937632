#!/bin/bash
# Tests mount options that the kernel applies. The superuser's options appear in the mount table and
# have their effect. A user's own mount never allows set-id programs and devices.
#
#   mount_flags_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

# shellcheck source=tests/posix/other_user.sh
source "$(dirname "$0")/other_user.sh"
helper=$(dirname "$siltfs")/mount.siltfs
flags() { awk -v m="$mnt" '$2 == m {print $4}' /proc/self/mounts; }
has() { [[ ,$(flags), == *,$1,* ]] || fail "$1 is not among $(flags)"; }
lacks() { [[ ,$(flags), != *,$1,* ]] || fail "$1 is among $(flags)"; }

step "by default neither set-id programs nor devices work"
make_and_mount
has nosuid
has nodev
has relatime
cp "$(command -v id)" "$mnt/id"
chmod 4755 "$mnt/id"
chown 1:1 "$mnt/id"
chmod 4755 "$mnt/id"
mknod --mode 666 "$mnt/null" c 1 3
[[ $(as_nobody "$mnt/id" -u) == 65534 ]] || fail "set-user-ID works on a nosuid mount"
! (: >"$mnt/null") 2>/dev/null || fail "a device works on a nodev mount"
"$siltfs" umount "$mnt"

for mount in "$siltfs mount" "$helper"; do
  step "set-id programs and devices work with the options suid and dev of $mount"
  $mount "$store" "$mnt" -o "suid,dev,allow_other,log=$work/log"
  lacks nosuid
  lacks nodev
  [[ $(as_nobody "$mnt/id" -u) == 1 ]] || fail "set-user-ID does not work"
  echo gone >"$mnt/null" || fail "the device does not work"
  "$siltfs" umount "$mnt"
done

step "mount.siltfs applies the defaults that mount(8) leaves out"
"$helper" "$store" "$mnt" -o "rw,allow_other,log=$work/log"
lacks nosuid
lacks nodev
"$siltfs" umount "$mnt"
"$helper" "$store" "$mnt" -o "rw,nosuid,log=$work/log"
has nosuid
lacks nodev
"$siltfs" umount "$mnt"

step "the index can be synchronous, and its rewriting can be limited"
"$siltfs" mount "$store" "$mnt" -o "index_sync,index_merge_rate=1M,log=$work/log"
seq 200000 >"$mnt/numbers"
"$siltfs" umount "$mnt"
"$siltfs" mount "$store" "$mnt" -o "log=$work/log"
cmp "$mnt/numbers" <(seq 200000) || fail "the file has changed"
"$siltfs" umount "$mnt"

step "a helper named after the type in the mount table works"
ln -s "$(readlink -f "$siltfs")" "$work/mount.fuse.siltfs"
ln -s "$(readlink -f "$siltfs")" "$work/umount.fuse.siltfs"
"$work/mount.fuse.siltfs" "$store" "$mnt" -o "rw,nodev,log=$work/log" -t fuse.siltfs
has nodev
lacks nosuid
"$work/umount.fuse.siltfs" -r -t fuse.siltfs "$mnt"
! mounted || fail "still mounted"

step "each option works alone, and the last of two contrary options counts"
mount_it suid
lacks nosuid
has nodev
"$siltfs" umount "$mnt"
mount_it dev,suid,nosuid
has nosuid
lacks nodev
"$siltfs" umount "$mnt"

step "the other options of the kernel"
mount_it noexec,sync,noatime
for flag in noexec sync noatime; do has $flag; done
lacks relatime
code=0
"$mnt/id" 2>/dev/null || code=$?
((code == 126)) || fail "a program runs on a noexec mount"
"$siltfs" umount "$mnt"
mount_it ro,defaults,strictatime
has ro
has nosuid
"$siltfs" umount "$mnt"

step "after a write, the next stat and the next run have no set-user-ID"
mount_it suid
chown 1:1 "$mnt/id"
chmod 4777 "$mnt/id"
[[ $(stat -c %a "$mnt/id") == 4777 ]] || fail "the mode is $(stat -c %a "$mnt/id")"
as_nobody sh -c "printf '\\0' >>'$mnt/id'"
[[ $(stat -c %a "$mnt/id") == 777 ]] || fail "the mode is still $(stat -c %a "$mnt/id")"
[[ $(as_nobody "$mnt/id" -u) == 65534 ]] || fail "a changed program keeps its rights"
unmount_and_check

step "set-id programs and devices never work on a user's own mount"
mnt=$work/own
let_other_user_mount "$disk/own-store" "$mnt"
as_nobody "$siltfs" mkfs "$disk/own-store"
as_nobody "$siltfs" mount "$disk/own-store" "$mnt" -o "suid,dev,log=$work/own-log"
has nosuid
has nodev
[[ $(grep -c "only the superuser may use it" "$work/own-log") == 2 ]] || fail "the log does not say so: $(cat "$work/own-log")"
as_nobody "$siltfs" umount "$mnt"
