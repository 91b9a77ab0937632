#!/bin/bash
# Several writers and another program (the neighbour) fill a disk to the last byte. Acknowledged
# data stays, new data is refused with the right error, deleting frees space, and the next mount
# finds everything unchanged.
#
#   full_disk_test.sh SILTFS [MEGABYTES [tmpfs|ext4]]
set -euo pipefail

siltfs=$1
megabytes=${2:-400}
disk_type=${3:-tmpfs}
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

mkdir "$work/kept" # digests of acknowledged files
figure() { "$siltfs" stat --json "$1" | jq -e ".$2"; }
holds() { [[ $(jq -n "$1") == true ]] || fail "not so: $1"; }
available() { df --output=avail -k "$1" | tail -1; }
digest() { sha256sum <"$1"; }

# Writes files with its own names and sizes until a file does not fit. Keeps digests of synced
# files.
writer() { # NAME KILOBYTES
  local i name
  for ((i = 0; ; ++i)); do
    name=$1-$i
    if ! noise "$2K" "$name $round" | dd of="$mnt/$name" bs=64k iflag=fullblock conv=fsync status=none 2>"$work/err-$1"; then
      grep -q 'No space left on device' "$work/err-$1" || fail "$name: $(cat "$work/err-$1")"
      rm -f "$mnt/$name" "$work/kept/$name"
      return 0
    fi
    digest <(noise "$2K" "$name $round") >"$work/kept/$name"
  done
}
fill() {
  round=$1
  local writers=()
  writer small 40 & writers+=($!)
  writer medium 900 & writers+=($!)
  writer large 8000 & writers+=($!)
  writer again 8000 & writers+=($!)
  for pid in "${writers[@]}"; do wait "$pid" || fail "a writer ended with $?"; done
}
neighbour() {
  local left=
  # Fills the disk repeatedly, because the store may free space while the disk is being filled.
  for ((i = 0; i < 100; ++i)); do
    dd if=/dev/zero of="$disk/neighbour" bs=1M oflag=append conv=notrunc status=none 2>/dev/null || true
    dd if=/dev/zero of="$disk/neighbour" bs=1k oflag=append conv=notrunc status=none 2>/dev/null || true
    left=$(available "$disk")
    ((left >= 4096)) || return 0
  done
  fail "the disk cannot be filled: $left KiB are left"
}
all_there() {
  local name
  for name in "$work/kept/"*; do
    [[ $(digest "$mnt/${name##*/}") == "$(cat "$name")" ]] || fail "${name##*/} is not as it was written"
  done
}
refused() { # WHAT COMMAND...
  local what=$1 code=0
  shift
  "$@" 2>"$work/err" || code=$?
  ((code != 0)) || fail "$what was not refused"
  grep -q 'No space left on device' "$work/err" || fail "$what: $(cat "$work/err")"
}
forget() { rm -f "$work/kept/$1"; }
some() { basename -a "$work/kept/$1"-* | sort -t- -k2n | awk -v n="$2" 'NR <= n'; }

case $disk_type in
  tmpfs) mount -t tmpfs -o "size=${megabytes}m,nr_inodes=0" none "$disk" ;;
  ext4)
    truncate -s "${megabytes}M" "$work/image"
    mkfs.ext4 -q -m 0 "$work/image"
    mount -o loop "$work/image" "$disk"
    ;;
esac
whole=$(available "$disk")

step "four writers fill the disk" # without background GC, which would free space
"$siltfs" mkfs "$store"
mount_it nogc
mkdir "$mnt/directory"
echo moved >"$mnt/directory/file"
fill 1
all_there
stored=$(figure "$mnt" stored_bytes)
holds "$stored >= $whole * 1024 * 0.8"
holds "$(available "$mnt") <= $whole * 0.05"
holds "$(figure "$mnt" reserve_bytes) >= $whole * 1024 / 20"
echo "of $whole KiB, $((stored / 1024)) are data, $(available "$disk") are left"

step "the neighbour fills the disk to the last byte"
neighbour
all_there
holds "$(available "$mnt") == 0"
refused "a write" dd if=/dev/urandom of="$mnt/$(some medium 1)" bs=64k count=1 oflag=append conv=notrunc,fsync status=none
refused "a new file" touch "$mnt/new"
refused "a directory" mkdir "$mnt/new"
refused "an attribute" setfattr -n user.a -v b "$mnt/directory"
all_there

step "a file that is opened on a full disk is written past the cache, and can still be mapped"
file=$mnt/$(some medium 1)
code=0
python3 - "$file" 2>"$work/err" <<'END' || code=$?
import errno, mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
past_the_cache = tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 6)
try:
    os.write(fd, bytes(4096))
    if past_the_cache:
        sys.exit("write was not refused")
    os.fsync(fd)
    sys.exit("neither write nor fsync was refused")
except OSError as error:
    if error.errno != errno.ENOSPC:
        raise
with mmap.mmap(fd, 4096) as mapped:
    if mapped[:] != os.pread(fd, 4096, 0):
        sys.exit("a mapping and a read show different bytes")
os.close(fd)
END
((code == 0)) || fail "$(cat "$work/err")"
all_there
[[ ! -e $mnt/new ]] || fail "a refused file exists"

step "reads, renames and deletions still work"
mv "$mnt/directory/file" "$mnt/directory/renamed"
[[ $(cat "$mnt/directory/renamed") == moved ]] || fail "the renamed file has other content"
chmod 700 "$mnt/directory"
for name in $(some large 6) $(some small 20); do
  rm "$mnt/$name"
  forget "$name"
done
for name in $(some again 3); do
  truncate -s 0 "$mnt/$name"
  digest /dev/null >"$work/kept/$name"
done
name=$(some medium 1)
truncate -s 100000 "$mnt/$name"
digest <(noise 900K "$name 1" | head -c 100000) >"$work/kept/$name"
sync "$mnt/directory"
all_there

step "gc frees the space without a remount"
"$siltfs" gc "$mnt"
holds "$(figure "$mnt" stored_bytes) < $stored - 50000000"
holds "$(available "$disk") * 1024 > 30000000"
holds "$(figure "$mnt" reserve_bytes) >= $whole * 1024 / 20"
holds "$(available "$mnt") * 1024 > 20000000"
noise 5000K more | dd of="$mnt/more" bs=64k iflag=fullblock conv=fsync status=none
digest <(noise 5000K more) >"$work/kept/more"
all_there

step "the disk is filled again, and the store is unmounted and mounted"
fill 2
neighbour
all_there
unmount_and_check
neighbour
mount_it nogc
all_there
# The mount may have freed space, for example that of old metadata logs. In this case a new file is
# not refused yet, so the disk is filled again.
for ((i = 0; i < 20; ++i)); do
  touch "$mnt/new" 2>/dev/null || break
  rm "$mnt/new"
  neighbour
done
refused "a new file" touch "$mnt/new"
for name in $(some large 100) $(some again 100); do
  rm "$mnt/$name"
  forget "$name"
done
sync "$mnt/directory"
"$siltfs" gc "$mnt"
all_there
unmount_and_check
rm "$disk/neighbour"
mount_it
fill 3
all_there
# Each writer has ended at the first refused write. Such a refusal may last only as long as a
# garbage collection, so the disk need not be full now.
holds "$(figure "$mnt" stored_bytes) >= $whole * 1024 * 0.7"

step "background GC frees the space, too"
for name in $(some large 10); do
  rm "$mnt/$name"
  forget "$name"
done
for ((i = 0; i < 600; ++i)); do
  (($(available "$mnt") > 40000)) && break
  sleep 0.2
done
holds "$(available "$mnt") > 40000"
fill 4
all_there

step "the daemon is killed while the disk is full"
neighbour
pid=$(figure "$mnt" pid)
kill -KILL "$pid"
umount --lazy "$mnt"
while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
mount_it
all_there
rm "$mnt"/medium-*
rm -f "$work/kept/medium-"*
"$siltfs" gc "$mnt"
all_there
unmount_and_check
