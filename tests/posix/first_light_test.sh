#!/bin/bash
# Tests the life cycle of a store with the real program, a real mount and common tools: make, mount,
# fill, compare, change, unmount, mount again, crash, recover.
#
#   first_light_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
src=$work/src
mkdir "$src"

# expect CODE COMMAND...: checks that the command ends with this code. Unless the code is 0, the
# command must print one sentence on standard error.
expect() {
  local want=$1 code=0
  shift
  "$@" 2>"$work/err" || code=$?
  ((code == want)) || fail "exit code $code instead of $want: $* ($(cat "$work/err"))"
  if ((want != 0)); then [[ $(wc -l <"$work/err") == 1 ]] || fail "not one sentence: $(cat "$work/err")"; fi
}
said() { grep -qF -- "$1" "$work/err" || fail "\"$1\" is not in: $(cat "$work/err")"; }
figure() { "$siltfs" stat --json "$store" | jq -e ".$1"; }
holds() { [[ $(jq -n "$1") == true ]] || fail "not so: $1"; }
# Whether a process has ended. The kernel closes the sockets of a process before the process is gone,
# so this waits a little.
daemon_ended() {
  local i
  for ((i = 0; i < 200; ++i)); do
    kill -0 "$1" 2>/dev/null || return 0
    [[ $(awk '/^State/ {print $2}' /proc/"$1"/status 2>/dev/null) != Z ]] || return 0
    sleep 0.05
  done
  return 1
}
# Lists every name of the store and a digest of every file.
snapshot() { (cd "$store" && find . -printf '%p %y %s\n' | LC_ALL=C sort && find . -type f -exec sha1sum {} + | LC_ALL=C sort -k2); }
# Reads the statistics of the unmounted store, which must not change it.
stat_changes_nothing() {
  snapshot >"$work/before"
  expect 0 "$siltfs" stat "$store" >/dev/null
  snapshot >"$work/after"
  cmp "$work/before" "$work/after" || fail "stat changed the store: $(diff "$work/before" "$work/after" | head)"
}
mount_it() { "$siltfs" mount "$store" "$mnt" -o "log=$work/log${1:+,$1}"; }

# Lists everything that cp -a keeps, file by file.
inventory() {
  (cd "$1" && find . -mindepth 1 -printf '%P\t%y\t%m\t%U:%G\t%n\t%l\t%TY-%Tm-%Td %TT' \( -type d -printf '\n' -o -printf '\t%s\n' \) |
    LC_ALL=C sort)
}
# Compares two trees. The inventory has no times of directories, because changes of entries change
# those times.
same() {
  # diff cannot compare two fifos or devices; the inventory does.
  if diff --recursive --no-dereference "$1" "$2" | grep -vE ' is a (fifo|character special file) while ' >"$work/diff"; then
    fail "contents differ: $(head "$work/diff")"
  fi
  diff <(inventory "$1") <(inventory "$2") >"$work/diff" || fail "attributes differ: $(head "$work/diff")"
}

step "a tree with a bit of everything"
mkdir -p "$src/deep/a/b/c/d/e/f/g" "$src/empty" "$src/many" "$src/sticky"
head -c 5000000 /dev/urandom >"$src/random"
head -c 3000000 /dev/zero >"$src/zeros"
yes "the quick brown fox jumps over the lazy dog" | head -c 2000000 >"$src/text" || true
: >"$src/nothing"
for size in 1 4095 4096 4097 65535 65536 65537 131073; do head -c "$size" /dev/urandom >"$src/size-$size"; done
for i in $(seq 500); do echo "file $i" >"$src/many/$i"; done
truncate -s 10M "$src/sparse"
echo middle | dd of="$src/sparse" bs=1 seek=5000000 conv=notrunc status=none
cp "$src/random" "$src/deep/a/b/c/d/e/f/g/copy"
ln "$src/text" "$src/hard-link"
ln -s deep/a/b "$src/link"
ln -s /nowhere/at/all "$src/dangling"
mkfifo "$src/fifo"
mknod "$src/device" c 1 3
echo odd >"$src/"$'name with spaces,\ttabs\nand a newline'
echo odd >"$src/Zürich-雪"
echo long >"$src/$(printf 'n%.0s' $(seq 255))"
chmod 4755 "$src/nothing"
chmod 1777 "$src/sticky"
chmod 000 "$src/size-1"
chown 12:34 "$src/size-4096"
# All times are long ago. If the time of a new file differed only by a fraction of a second, rsync
# would not correct it.
find "$src" -exec touch -h -d '2019-03-04 05:06:07.123456789' {} +
touch -h -d '1969-07-20 20:17:40.123456789' "$src/link" "$src/size-4097"
setfattr -n user.comment -v 'some value' "$src/text"

step "make and mount"
expect 10 "$siltfs" mount "$store" "$mnt"
expect 10 "$siltfs" stat "$store"
expect 0 "$siltfs" mkfs "$store"
expect 1 "$siltfs" mkfs "$store"
expect 0 mount_it
mounted || fail "not in the mount table"
grep -q "^$store $mnt fuse.siltfs " /proc/self/mounts || fail "the mount table says $(grep "$mnt" /proc/self/mounts)"
pid=$(figure pid)
kill -0 "$pid" || fail "no daemon $pid"
[[ $("$siltfs" stat --json "$mnt" | jq -r .mountpoint) == "$mnt" ]] || fail "stat of the mountpoint"
"$siltfs" stat "$mnt" | grep -q "process $pid" || fail "the table of stat"

step "a mounted store is in use"
expect 11 "$siltfs" mount "$store" "$src/empty"
said "$store"
expect 11 "$siltfs" mkfs "$store"

step "copy the tree into the mount with cp, rsync and tar"
cp -a "$src" "$mnt/cp"
same "$src" "$mnt/cp"
mkdir "$mnt/tar"
tar -C "$src" --xattrs -cf - . | tar -C "$mnt/tar" --xattrs --warning=no-timestamp -xpf -
touch -d "$(stat -c %y "$src")" "$mnt/tar"
same "$src" "$mnt/tar"
rsync -aHX "$src/" "$mnt/rsync/"
same "$src" "$mnt/rsync"
[[ $(getfattr --absolute-names --only-values -n user.comment "$mnt/cp/text") == "some value" ]] || fail "extended attribute"
(($(stat -c %b "$mnt/cp/sparse") < 1000)) || fail "the sparse file takes $(stat -c %b "$mnt/cp/sparse") blocks"
(($(stat -c %i "$mnt/cp/text") == $(stat -c %i "$mnt/cp/hard-link"))) || fail "hard link"
same "$mnt/cp" "$mnt/rsync"

step "the second and third copy cost little"
"$siltfs" stat --json "$store" >"$work/stat"
holds "$(jq .dedup_ratio "$work/stat") > 2.5"
holds "$(jq .logical_bytes "$work/stat") > 30000000"
holds "$(jq .files "$work/stat") > 1500"
df --output=size "$mnt" >/dev/null
(($(du -s --apparent-size -B1 "$mnt/cp" | cut -f1) > 20000000)) || fail "du"
(($(find "$mnt/cp" -type f | wc -l) == $(find "$src" -type f | wc -l))) || fail "find"

step "equal changes in source and copy keep them equal"
change() {
  cd "$1"
  mv deep moved
  mv moved/a/b/c/d "d renamed"
  mv text random # replaces
  ln hard-link many/another-name
  ln -s many/1 new-link
  chmod 640 size-65536
  chown 1:2 size-65537
  rm -r many/1?? sticky
  rm dangling fifo
  rmdir empty
  truncate -s 100000 size-131073
  truncate -s 20M zeros
  echo appended >>size-4095
  printf 'patched' | dd of=sparse bs=1 seek=4999990 conv=notrunc status=none
  mkdir -p new/directory
  cp -r many new/directory/
  sed -i 's/file/FILE/' many/2?
  find . -exec touch -h -d '2001-02-03 04:05:06' {} +
  cd /
}
cp -a "$src" "$work/reference"
change "$work/reference"
change "$mnt/cp"
same "$work/reference" "$mnt/cp"
rm -r "$mnt/tar"
[[ ! -e $mnt/tar ]] || fail "rm -r"
same "$src" "$mnt/rsync"

step "an open file keeps the mount busy"
exec 9>"$mnt/open"
expect 1 "$siltfs" umount "$mnt"
said "$mnt"
mounted || fail "the busy mount is gone"
exec 9>&-
rm "$mnt/open"

step "the index of a mounted store"
holds "$("$siltfs" index stat --json "$mnt" | jq .pid) == $pid"
holds "$("$siltfs" index stat --json "$store" | jq .entries) > 0"
expect 11 "$siltfs" index dump "$mnt"
said "$store"
expect 11 "$siltfs" index verify "$store"

step "after an unmount everything is durable, the daemon is gone, and the store is not in use"
expect 0 "$siltfs" umount "$mnt"
! mounted || fail "still mounted"
daemon_ended "$pid" || fail "the daemon is still there"
[[ ! -e $store/control ]] || fail "the socket is still there"
[[ $(figure pid) == null ]] || fail "stat of the unmounted store"
stat_changes_nothing
holds "$(figure files) > 500"
expect 0 "$siltfs" index verify "$store" >/dev/null
holds "$("$siltfs" index dump "$store" | sort -u | wc -l) == $("$siltfs" index stat --json "$store" | jq .entries)"
"$siltfs" index dump --names "$store" >"$work/names"
holds "$(jq -r 'select(.name != null) | .name' "$work/names" | sort -u | grep -cE '^[0-9a-f]{40}$') == $("$siltfs" index stat --json "$store" | jq .entries)"
snapshot >"$work/after"
cmp "$work/before" "$work/after" || fail "reading the index changed the store"
expect 1 "$siltfs" umount "$mnt"
[[ -z $(ls -A "$mnt") ]] || fail "something was written below the mountpoint"

step "mount again: all files are there"
expect 0 mount_it noxattr
same "$work/reference" "$mnt/cp"
same "$src" "$mnt/rsync"
if getfattr -n user.comment "$mnt/rsync/text" 2>/dev/null; then fail "an extended attribute under noxattr"; fi
expect 0 "$(dirname "$siltfs")/umount.siltfs" "$mnt"

step "without memory for the index, results are the same"
expect 0 mount_it index_memory=0
same "$src" "$mnt/rsync"
unique=$(figure chunks_unique)
rsync -aHX "$src/" "$mnt/once-more/"
same "$src" "$mnt/once-more"
holds "$(figure chunks_unique) < $unique + $unique / 10"
head -c 3M /dev/urandom >"$work/fresh"
cp "$work/fresh" "$mnt/fresh"
sync "$mnt/fresh"
cmp "$work/fresh" "$mnt/fresh" || fail "a file written without memory for the index"
holds "$("$siltfs" index stat --json "$mnt" | jq .memory_bytes) < 2000000"
rm -r "$mnt/once-more" "$mnt/fresh"
expect 0 "$siltfs" umount "$mnt"
expect 0 "$siltfs" index verify "$store" >/dev/null

step "a read-only mount"
expect 0 mount_it ro
same "$src" "$mnt/rsync"
if touch "$mnt/new" 2>/dev/null; then fail "written to a read-only mount"; fi
expect 0 "$siltfs" umount "$mnt"

step "mount.siltfs is called as mount(8) calls it"
expect 0 "$(dirname "$siltfs")/mount.siltfs" "$store" "$mnt" -o "rw,nodev,nosuid,noauto,user=root,log=$work/log"
grep -q "^$store $mnt fuse.siltfs rw,nosuid,nodev," /proc/self/mounts || fail "the mount options"
pid=$(figure pid)

step "SIGTERM unmounts"
echo kept >"$mnt/before-sigterm"
kill -TERM "$pid"
tail --pid="$pid" -s 0.05 -f /dev/null
! mounted || fail "still mounted after SIGTERM"
expect 0 mount_it
[[ $(cat "$mnt/before-sigterm") == kept ]] || fail "lost by SIGTERM"

step "a killed daemon leaves a dead mount, and loses no synced data"
cp "$src/random" "$mnt/synced"
sync "$mnt/synced"
kill -KILL "$(figure pid)"
while stat --file-system "$mnt" &>/dev/null; do :; done
mounted || fail "the dead mount disappeared by itself"
expect 1 "$siltfs" mount "$store" "$mnt"
said "crashed"
stat_changes_nothing
expect 0 "$siltfs" umount "$mnt"
stat_changes_nothing
expect 0 mount_it
cmp "$src/random" "$mnt/synced" || fail "a synced file is damaged"
same "$src" "$mnt/rsync"
expect 0 "$siltfs" umount "$mnt"

step "changes without an fsync are committed after the commit interval"
expect 0 "$siltfs" mount "$store" "$mnt" -o commit=1
cp -a "$src" "$mnt/unsynced"
sync --file-system "$mnt" # the kernel sends the data, but no request to make it durable
before=$(figure last_commit)
while (($(figure last_commit) < before + 2)); do sleep 0.1; touch "$mnt/tick"; done
kill -KILL "$(figure pid)"
while stat --file-system "$mnt" &>/dev/null; do :; done
expect 0 "$siltfs" umount "$mnt"
expect 0 mount_it
same "$src" "$mnt/unsynced"
expect 0 "$siltfs" umount "$mnt"

echo "all well"
