#!/bin/bash
# Mounts a store with two processes (siltfs mount --part), as the service siltfs@NAME does: a daemon
# with a mount namespace of its own and without the right to mount, and a process that makes the
# mount for it.
#
#   mount_parts_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

mount --bind "$work" "$work"
mount --make-shared "$work"
other=$work/other
mkdir "$other" "$work/other-mnt"

# Starts a daemon, whose messages are in $work/said.
serve() { # PROPAGATION [OPTION]
  : >"$work/said"
  unshare --mount --propagation "$1" setpriv --inh-caps=-all --bounding-set=-all,+dac_override,+dac_read_search \
    "$siltfs" mount --part=serve "$store" "$mnt" -o "allow_other,io_uring=${SILTFS_TEST_IO_URING:-auto}${2:+,$2}" >>"$work/said" 2>&1 &
  daemon=$!
}
# Makes the mount, as soon as the daemon waits for it.
make_mount() { # [OPTION]
  local i said
  for ((i = 0; i < 600; ++i)); do
    ! said=$("$siltfs" mount --part=mount "$store" "$mnt" -o "allow_other${1:+,$1}" 2>&1) || return 0
    [[ $said == *"is not mounted"* || $said == *"does not wait for a process"* || $said == *"crashed ["* ]] || break
    sleep 0.05
  done
  echo "$said"
  return 1
}
# Waits for the daemon, which must end with this code.
ended_with() { # CODE
  local code=0
  wait "$daemon" || code=$?
  ((code == $1)) || fail "the daemon ended with $code: $(cat "$work/said")"
}
said() { grep -qF -- "$1" "$work/said" || fail "\"$1\" is not in: $(cat "$work/said")"; }
remove_mounts() { "$siltfs" mount --part=remove "$store" "$mnt" >>"$work/said" 2>&1 || fail "$(cat "$work/said")"; }
# Seeks data in a file that was just written; prints the offset, or the error. The daemon must write
# the file back for this.
seek() {
  python3 - "$mnt/sought" <<'END'
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.pwrite(file, b"data", 1 << 20)
try:
    print(os.lseek(file, 0, os.SEEK_DATA))
except OSError as error:
    print(error.errno)
END
}

# shellcheck source=tests/posix/held_file.sh
source "$(dirname "$0")/held_file.sh"

"$siltfs" mkfs "$store"
"$siltfs" mkfs "$other"
"$siltfs" mount "$other" "$work/other-mnt"

step "what a usual mount does, for comparison"
mount_it
sought=$(seek)
rm "$mnt/sought"
"$siltfs" umount "$mnt"

step "without a daemon that waits, nothing is mounted"
! said=$("$siltfs" mount --part=mount "$store" "$mnt" 2>&1) || fail "no failure"
[[ $said == *"is not mounted"* ]] || fail "$said"
code=0
"$siltfs" mount --part=half "$store" "$mnt" 2>/dev/null || code=$?
((code == 2)) || fail "exit code $code"

step "the daemon serves the mount that the other process makes"
serve slave
make_mount || fail "no mount"
mounted || fail "not in the mount table"
[[ $(readlink "/proc/$daemon/ns/mnt") != $(readlink /proc/self/ns/mnt) ]] || fail "the daemon shares the namespace"
[[ $(seek) == "$sought" ]] || fail "seek: $(seek), not $sought"
! "$siltfs" mount --part=mount "$store" "$mnt" 2>/dev/null || fail "mounted twice"
noise 1M 1 >"$mnt/file"
"$siltfs" snapshot create "$mnt" first
"$siltfs" umount "$mnt" || fail "umount"
ended_with 0
! mounted || fail "still mounted"

step "a signal ends the mount, keeps the data of open files, and leaves no mount of a snapshot"
serve slave
make_mount || fail "no mount"
mkdir -p "$work/snapshot"
"$siltfs" mount -o snapshot=first "$store" "$work/snapshot"
hold "$mnt/open" "before the signal"
kill -TERM "$daemon"
ended_with 0
! grep '\[error\]' "$work/said" || fail "the daemon tried what it may not do"
remove_mounts
lost_access
! grep " $work/\(mnt\|snapshot\) fuse" /proc/self/mounts || fail "still mounted"
grep -q " $work/other-mnt fuse" /proc/self/mounts || fail "the mount of another store was removed"
"$siltfs" fsck -n --data "$store" || fail "fsck"
mount_it
[[ $(cat "$mnt/open") == "before the signal" ]] || fail "the data of the open file is lost"
remove_mounts
mounted || fail "a mount with a daemon was removed"
"$siltfs" umount "$mnt"

step "a signal ends the mount while programs write, seek and sync"
for round in 1 2 3; do
  serve slave
  make_mount || fail "no mount"
  for file in 1 2 3; do
    (while mounted && [[ $(seek 2>/dev/null) == "$sought" ]]; do :; done) &
  done
  (while "$siltfs" sync "$mnt" 2>/dev/null; do :; done) &
  sleep 0.3
  kill -TERM "$daemon"
  ended_with 0
  remove_mounts
  wait
  ! mounted || fail "still mounted"
  rm -f "$mnt/sought" # of a program that came after the end
done
"$siltfs" fsck -n --data "$store" || fail "fsck"

step "after the daemon was killed, its mount is removed though files are open"
serve slave
make_mount || fail "no mount"
exec 7<"$mnt/file"
kill -KILL "$daemon"
ended_with 137 2>/dev/null # the shell reports the signal
remove_mounts
! mounted || fail "still mounted"
exec 7<&-

step "a process that makes the mount and ends before it hands it over fails, and leaves no daemon"
serve slave
for ((i = 0; i < 600; ++i)); do
  if [[ $("$siltfs" stat --json "$store" 2>/dev/null | jq .pid) == "$daemon" ]]; then break; fi
  sleep 0.05
done
exec 8<>/dev/fuse
mount -i -t fuse.siltfs -o fd=8,rootmode=40000,user_id=0,group_id=0 "$store" "$mnt"
exec 8>&-
remove_mounts
! mounted || fail "still mounted"
kill -TERM "$daemon"
ended_with 130
said 'opening the store was interrupted'

step "a daemon that does not see the mount fails, and nothing remains mounted"
serve private
! said=$(make_mount) || fail "no failure"
[[ $said == *"does not see the mount that was made for it"* ]] || fail "$said"
ended_with 1
said 'does not see the mount that was made for it'
! mounted || fail "still mounted"

step "a mount that the kernel refuses ends the daemon"
serve slave
! said=$(make_mount context=none) || fail "no failure"
[[ $said == *"cannot be mounted"* ]] || fail "$said"
ended_with 1
said 'the process that was to mount it for this daemon has failed'
! mounted || fail "still mounted"

step "the parts find each other on a read-only medium"
mount --bind "$disk" "$disk"
mount -o remount,bind,ro "$disk"
serve slave ro
make_mount ro || fail "no mount"
noise 1M 1 | cmp - "$mnt/file" || fail "the file differs"
"$siltfs" umount "$mnt" || fail "umount"
ended_with 0
umount "$disk"
"$siltfs" umount "$work/other-mnt"
