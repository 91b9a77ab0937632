#!/bin/bash
# Tests the life cycle of the daemon as commands see it. The steps cover how the daemon ends, and
# how each command reports this. They also cover commands while the daemon is closing, stopped or
# unreachable, and a start without standard descriptors.
#
#   lifecycle_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

# expect CODE COMMAND...: checks that the command ends with this code. Unless the code is 0, the
# command must print one sentence on standard error.
expect() {
  local want=$1 code=0
  shift
  timeout 120 "$@" 2>"$work/err" >"$work/out" || code=$?
  ((code == want)) || fail "exit code $code instead of $want: $* ($(cat "$work/err"))"
  if ((want != 0)); then [[ $(wc -l <"$work/err") == 1 ]] || fail "not one sentence: $(cat "$work/err")"; fi
}
said() { grep -qF -- "$1" "$work/err" || fail "\"$1\" is not in: $(cat "$work/err")"; }
daemon_of() { "$siltfs" stat --json "$1" | jq -e .pid; }
# The first thread of a process may end before the others, which keep the sockets open.
has_ended() {
  ! kill -0 "$1" 2>/dev/null && return
  grep -qs "^State:.Z" "/proc/$1/status" && (($(find "/proc/$1/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l) <= 1))
}
wait_for_end() { while ! has_ended "$1"; do :; done; }

step "each command that needs exclusive access names the process that has the store, and what to do"
make_and_mount
pid=$(daemon_of "$mnt")
for command in mkfs "index dump" "index verify" "index rebuild"; do
  # shellcheck disable=SC2086
  expect 11 "$siltfs" $command "$store"
  said "is mounted on $mnt by process $pid; use siltfs umount $mnt"
done
mkdir "$work/second"
expect 11 "$siltfs" mount "$store" "$work/second"
said "is mounted on $mnt by process $pid"
expect 8 "$siltfs" fsck "$store"
said "is mounted on $mnt by process $pid"
expect 11 "$siltfs" gc "$store"
said "use siltfs gc $mnt"

step "stat takes any path in the mount"
mkdir "$mnt/directory"
echo text >"$mnt/directory/file"
ln -s /etc/passwd "$mnt/link"
for path in "$mnt/directory" "$mnt/directory/file"; do
  [[ $("$siltfs" stat --json "$path" | jq -r .mountpoint) == "$mnt" ]] || fail "stat of $path"
done
(cd "$mnt/directory" && "$siltfs" stat . >/dev/null) || fail "stat of the working directory"
expect 10 "$siltfs" stat /etc/passwd
said "/etc/passwd: is neither the directory of a store nor in a mounted siltfs file system"
expect 10 "$siltfs" stat "$mnt/link"
said "/etc/passwd"

step "an open file keeps the mount"
exec 9>"$mnt/open"
expect 1 "$siltfs" umount "$mnt"
said "fuser -vm $mnt"
exec 9>&-

step "other users get an error that says they may not ask"
chmod 711 "$disk" "$store"
expect 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$siltfs" stat "$store"
said "only the superuser and the user that mounted the store may ask its daemon"
chmod 700 "$store"

step "commands name a stopped daemon instead of waiting forever"
kill -STOP "$pid"
asking=()
for command in "stat $mnt" "stat $mnt/directory/file" "sync $mnt" "gc $mnt"; do
  # shellcheck disable=SC2086
  timeout 60 "$siltfs" $command 2>"$work/err.${#asking[@]}" >/dev/null &
  asking+=($!)
done
expect 1 "$siltfs" umount "$mnt"
said "$mnt: its daemon, process $pid, is stopped and does not answer; \"kill -CONT $pid\" continues it"
for i in "${!asking[@]}"; do
  code=0
  wait "${asking[$i]}" || code=$?
  ((code == 1)) || fail "command $i with a stopped daemon ended with $code"
  grep -qF "process $pid, is stopped" "$work/err.$i" || fail "command $i says $(cat "$work/err.$i")"
done
mounted || fail "it was unmounted nevertheless"
kill -CONT "$pid"
expect 0 "$siltfs" umount "$mnt"
has_ended "$pid" || fail "the daemon is still there"

step "a mount waits for a daemon that is closing the store"
for round in 1 2 3 4; do
  mount_it
  head -c 2M /dev/urandom >"$mnt/round-$round"
  umount "$mnt"
done
expect 0 "$siltfs" fsck "$store" # fsck waits for the daemon, too
mount_it
[[ $(find "$mnt" -name 'round-*' -size 2M | wc -l) == 4 ]] || fail "files are missing"

# This step needs private propagation, so that a second mount namespace keeps the mount when it is
# removed in this one.
if [[ $SILTFS_TEST_CONTAINED == private ]]; then
  step "umount reports a mount that another mount namespace holds"
  pid=$(daemon_of "$mnt")
  mkfifo "$work/held" "$work/let-go"
  unshare --mount --propagation private bash -c 'echo held >"$0/held"; read -r _ <"$0/let-go"' "$work" &
  holder=$!
  read -r _ <"$work/held"
  expect 1 "$siltfs" umount "$mnt"
  said "is unmounted here, but process $pid goes on serving it"
  ! mounted || fail "still mounted"
  echo now >"$work/let-go"
  wait "$holder"
  wait_for_end "$pid"
else
  step "SKIPPED, the root of this chroot is not a mount point: umount with a second mount namespace"
  "$siltfs" umount "$mnt"
fi
mount_it

step "umount removes the mount of a killed daemon, and reports that"
pid=$(daemon_of "$mnt")
kill -KILL "$pid"
wait_for_end "$pid"
for command in gc sync; do
  expect 1 "$siltfs" "$command" "$mnt"
  said "its daemon was killed or crashed; siltfs umount $mnt removes the mount"
done
expect 0 "$siltfs" umount "$mnt"
said "a daemon that was killed or had crashed"

step "umount -f ends the mount of a daemon that does not answer"
mount_it
pid=$(daemon_of "$mnt")
kill -STOP "$pid"
expect 0 "$siltfs" umount -f "$mnt"
said "$mnt: the mount of a daemon that does not answer is aborted"
! mounted || fail "still mounted"
kill -CONT "$pid"
wait_for_end "$pid"

step "umount -f of a daemon that answers loses nothing"
mount_it
head -c 2M /dev/urandom >"$work/forced"
cp "$work/forced" "$mnt/forced"
expect 0 "$siltfs" umount -f "$mnt"
said_nothing
mount_it
cmp "$work/forced" "$mnt/forced"

step "umount -l leaves open files usable, and the daemon ends with them"
pid=$(daemon_of "$mnt")
exec 9>"$mnt/late"
expect 0 "$siltfs" umount -l "$mnt"
! mounted || fail "still mounted"
kill -0 "$pid" || fail "the daemon has ended"
echo late >&9
exec 9>&-
wait_for_end "$pid"
mount_it
[[ $(cat "$mnt/late") == late ]] || fail "the file written after umount -l differs"
expect 0 "$siltfs" umount "$mnt"

step "the daemon follows a moved store, and no other store is made in the old place"
mount_it
pid=$(daemon_of "$mnt")
head -c 3M /dev/urandom >"$work/content"
cp "$work/content" "$mnt/before"
mv "$store" "$disk/elsewhere"
expect 11 "$siltfs" mkfs "$store"
said "is mounted on $mnt by process $pid; use siltfs umount $mnt"
mkdir -p "$store/segments" "$store/index" "$store/meta" # a directory at the store's old path, with the same folders
cp "$work/content" "$mnt/after"
expect 0 "$siltfs" sync "$mnt"
expect 0 "$siltfs" umount "$mnt"
! mounted || fail "still mounted"
has_ended "$pid" || fail "umount came back before the daemon had ended"
[[ -z $(find "$store" -type f) ]] || fail "the daemon wrote into another directory: $(find "$store" -type f)"
rm -r "$store"
mv "$disk/elsewhere" "$store"
expect 0 "$siltfs" fsck --data "$store"
mount_it
cmp "$work/content" "$mnt/before"
cmp "$work/content" "$mnt/after"

step "an unreachable daemon"
pid=$(daemon_of "$mnt")
mv "$store" "$disk/elsewhere"
expect 1 unshare --net "$siltfs" umount "$mnt"
said "is unmounted, but its daemon cannot be asked whether everything is durable"
! mounted || fail "still mounted"
wait_for_end "$pid"
mv "$disk/elsewhere" "$store"
mount_it
unmount_and_check

step "a file in the place of the socket"
: >"$store/control"
expect 1 "$siltfs" mount "$store" "$mnt"
said "remove this file"
rm "$store/control"

step "obstacles to a mount are reported"
mknod "$work/fuse" c 10 229
chmod 600 "$work/fuse"
mount --bind "$work/fuse" /dev/fuse
chown -R 65534 "$disk"
expect 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$siltfs" mount "$store" "$work/second"
chown -R 0 "$disk"
umount /dev/fuse
said "/dev/fuse: this user may not open it: its mode is 0600 and its group 0"
if ! grep -q selinuxfs /proc/filesystems; then
  expect 1 "$siltfs" mount "$store" "$mnt" -o context=system_u:object_r:tmp_t:s0
  said "the context= options need a kernel on which SELinux is enabled"
fi

step "without standard descriptors"
expect_open() { # descriptors 0 to 2 of the daemon are no files of the store
  local pid
  pid=$(daemon_of "$mnt")
  for number in 0 1 2; do
    case $(readlink "/proc/$pid/fd/$number") in
      /dev/null) ;;
      *) fail "descriptor $number is $(readlink "/proc/$pid/fd/$number")" ;;
    esac
  done
  expect 0 "$siltfs" umount "$mnt"
}
timeout 120 "$siltfs" mount "$store" "$mnt" >&- 2>&- || fail "mount without 1 and 2"
expect_open
timeout 120 "$siltfs" mount "$store" "$mnt" <&- >&- || fail "mount without 0 and 1"
expect_open
timeout 120 "$siltfs" mount "$store" "$mnt" <&- 2>&- || fail "mount without 0 and 2"
expect_open
timeout 120 "$siltfs" mount "$store" "$mnt" <&- >&- 2>&- || fail "mount without any"
expect_open
timeout 120 "$siltfs" fsck "$store" <&- >/dev/null 2>&- || fail "fsck without 0 and 2"
timeout 120 "$siltfs" mkfs "$disk/other" <&- >&- 2>&- || fail "mkfs without any"
timeout 120 "$siltfs" fsck -n "$disk/other" >/dev/null || fail "fsck of the store made without descriptors"

# This step needs a separate disk that can be shut down.
if [[ -n $(command -v mkfs.xfs) && -n $(command -v xfs_io) ]] && losetup --find >/dev/null 2>&1; then
  step "the file system below the store is shut down: umount says that data was lost"
  truncate -s 400M "$work/image"
  mkfs.xfs -q "$work/image"
  mkdir "$work/lower"
  mount -o loop "$work/image" "$work/lower"
  store=$work/lower/store
  make_and_mount
  pid=$(daemon_of "$mnt")
  head -c 3M /dev/urandom >"$mnt/lost"
  xfs_io -x -c shutdown "$work/lower"
  expect 1 "$siltfs" umount "$mnt"
  ! grep -q "cannot be asked" "$work/err" || fail "the daemon was not asked: $(cat "$work/err")"
  ! mounted || fail "still mounted"
  has_ended "$pid" || fail "umount came back before the daemon had ended"
fi

echo "all well"
