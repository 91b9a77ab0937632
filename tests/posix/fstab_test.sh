#!/bin/bash
# Tests mount(8) and umount(8) with lines of fstab(5), as the system mounts at its start.
#
#   fstab_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/other_user.sh
source "$(dirname "$0")/other_user.sh"
# shellcheck source=tests/posix/system_helpers.sh
source "$(dirname "$0")/system_helpers.sh"

mounts() { grep -c " $mnt fuse.siltfs " /proc/self/mounts || true; }
daemon_of() { "$siltfs" stat --json "$1" | jq -e .pid; }

# The only line of the fstab that the following commands use.
fstab=$work/fstab
line() { # OPTIONS
  printf '%s %s siltfs %s 0 0\n' "$store" "$mnt" "$1,log=$work/log" >"$fstab"
}

step "mount -a mounts a store"
"$siltfs" mkfs "$store"
line defaults,nofail,x-systemd.requires-mounts-for=/srv,_netdev,comment=store
expect 0 mount --fstab "$fstab" -a
mounted || fail "not in the mount table"
noise 3000000 1 >"$work/content"
cp "$work/content" "$mnt/content"
pid=$(daemon_of "$mnt")

step "mount -a leaves a mounted store alone"
expect 0 mount --fstab "$fstab" -a
(($(mounts) == 1)) || fail "it is mounted $(mounts) times"
[[ $(daemon_of "$mnt") == "$pid" ]] || fail "there is another daemon"

step "umount(8) as systemd calls it returns when the daemon has ended, and everything is durable"
expect 0 umount -c "$mnt"
! mounted || fail "still mounted"
! kill -0 "$pid" 2>/dev/null || [[ $(awk '/^State/ {print $2}' "/proc/$pid/status") == Z ]] ||
  fail "the daemon has not ended"
! grep -q error "$work/log" || fail "the log has errors"
expect 0 fsck.siltfs -n "$store"

step "noauto lines are mounted by name only"
line noauto
expect 0 mount --fstab "$fstab" -a
! mounted || fail "mount -a mounted a line with noauto"
expect 0 mount --fstab "$fstab" "$mnt"
cmp "$work/content" "$mnt/content" || fail "the file differs"
expect 0 umount "$mnt"

step "the options of mount(8) that do not concern a file system are accepted"
for type in siltfs fuse.siltfs; do
  for options in defaults rw auto noauto nofail user users owner group nouser _netdev \
    comment=backup x-systemd.automount,x-systemd.device-timeout=5 x-gvfs-show \
    rw,relatime,async,nofail,users,_netdev,x-systemd.requires-mounts-for=/srv; do
    expect 0 mount -t "$type" -o "$options,log=$work/log" "$store" "$mnt"
    mounted || fail "not mounted with -t $type -o $options"
    expect 0 umount "$mnt"
    ! mounted || fail "still mounted after -t $type -o $options"
  done
done

step "mount(8) can make the mountpoint"
expect 0 mount -t siltfs -o "X-mount.mkdir,log=$work/log" "$store" "$work/made/here"
expect 0 umount "$work/made/here"

step "ro and the flags of the kernel"
line ro,nosuid,nodev,noexec,noatime
expect 0 mount --fstab "$fstab" -a
for flag in ro nosuid nodev noexec noatime; do
  awk -v m="$mnt" '$2 == m {print "," $4 ","}' /proc/self/mounts | grep -q ",$flag," || fail "$flag is missing"
done
! (: >"$mnt/new") 2>/dev/null || fail "a read-only mount was written"
expect 0 umount "$mnt"

step "a faked mount checks, but does not mount"
expect 0 mount -f -t siltfs "$store" "$mnt"
! mounted || fail "it is mounted"

step "failures of the helper are reported by mount(8)"
line defaults
expect 0 mount --fstab "$fstab" -a
mkdir "$work/second"
expect 32 mount -t siltfs "$store" "$work/second"
said "is mounted on $mnt by process"
expect 1 mount -o remount,ro "$mnt"
said 'mount option "remount" is refused'
exec 9>"$mnt/open"
expect 1 umount -c "$mnt"
said "fuser -vm $mnt"
expect 32 umount "$mnt" # without the helper
mounted || fail "a busy mount is gone"
exec 9>&-
expect 0 umount "$mnt"
expect 1 mount -t siltfs -o frobnicate "$store" "$mnt"
said 'unknown mount option "frobnicate"'
expect 32 mount -t siltfs "$work/second" "$mnt"
said "$work/second"

step "umount -l leaves open files usable"
line defaults
expect 0 mount --fstab "$fstab" -a
pid=$(daemon_of "$mnt")
exec 9>"$mnt/late"
expect 0 umount -l "$mnt"
! mounted || fail "still mounted"
echo late >&9
exec 9>&-
expect 0 mount --fstab "$fstab" -a # waits until the daemon has ended
[[ $(cat "$mnt/late") == late ]] || fail "the file written after umount -l differs"
expect 0 umount "$mnt"

step "umount -f ends the mount of a daemon that does not answer"
expect 0 mount --fstab "$fstab" -a
pid=$(daemon_of "$mnt")
kill -STOP "$pid"
expect 0 umount -f "$mnt"
! mounted || fail "still mounted"
kill -CONT "$pid"
expect 0 fsck.siltfs -n "$store" # waits until the daemon has ended

# systemd waits on such a mountpoint (x-systemd.automount) until the store is mounted there. Only the
# process group of the program that waits may pass the mountpoint before.
if grep -q autofs /proc/filesystems; then
  step "a store can be mounted on a mountpoint of autofs"
  cat >"$work/automount.py" <<'END'
import ctypes, fcntl, os, struct, subprocess, sys

READY = 0x9360  # AUTOFS_IOC_READY, linux/auto_fs.h
store, mountpoint, options = sys.argv[1:]
os.setpgid(0, 0)
requests, kernel_end = os.pipe()
libc = ctypes.CDLL(None, use_errno=True)
data = f"fd={kernel_end},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
if libc.mount(b"test", mountpoint.encode(), b"autofs", 0, data.encode()) != 0:
    sys.exit(f"autofs: {os.strerror(ctypes.get_errno())}")
root = os.open(mountpoint, os.O_RDONLY)
waiting = subprocess.Popen(["ls", mountpoint], stdout=subprocess.DEVNULL, start_new_session=True)
_, _, token = struct.unpack_from("=iiI", os.read(requests, 4096))
subprocess.run(["mount", "-t", "siltfs", "-o", options, store, mountpoint], timeout=60, check=True)
fcntl.ioctl(root, READY, token)
sys.exit(waiting.wait(60))
END
  mkdir "$work/auto"
  expect 0 python3 "$work/automount.py" "$store" "$work/auto" "log=$work/log"
  cmp "$work/content" "$work/auto/content" || fail "the file differs"
  expect 0 umount -c "$work/auto"
  umount "$work/auto"
fi

step "fsck(8) and mkfs(8) find their helpers"
expect 0 fsck -t siltfs "$store"
expect 0 mkfs -t siltfs "$disk/other"
[[ -d $disk/other/segments ]] || fail "mkfs(8) made no store"

# mount(8) lets other users mount only what /etc/fstab allows.
if [[ -e /etc/fstab && -u $(command -v mount) && -u $(command -v fusermount3) ]]; then
  step "a user mounts and unmounts a line with the option user"
  mnt=$work/own
  let_other_user_mount "$disk/own" "$mnt"
  as_nobody "$siltfs" mkfs "$disk/own"
  echo "$disk/own $mnt siltfs noauto,user,log=$work/own-log 0 0" >"$fstab"
  mount --bind "$fstab" /etc/fstab
  expect 0 "${other_user[@]}" mount "$mnt"
  mounted || fail "not mounted by the user"
  as_nobody sh -c "echo mine >'$mnt/file'"
  expect 0 "${other_user[@]}" umount "$mnt"
  ! mounted || fail "still mounted"
fi

echo "all well"
