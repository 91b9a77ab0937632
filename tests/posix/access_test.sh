#!/bin/bash
# Tests access rights. Only the owner of a store may read its files or talk to its daemon. Other
# users may use a mount only with allow_other, and only as far as the modes of the files allow. A
# symbolic link in a store never leads siltfs to files outside the store.
#
#   access_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

mode() { stat -c %a "$1"; }
# shellcheck source=tests/posix/other_user.sh
source "$(dirname "$0")/other_user.sh"
refused() { ! "$@" >"$work/out" 2>&1 || fail "was not refused: $*"; }

step "mkfs makes an existing directory private to the owner"
mkdir --mode 755 "$store"
umask 000
"$siltfs" mkfs "$store"
[[ $(mode "$store") == 700 ]] || fail "the store has mode $(mode "$store")"

step "a directory made by mkfs and everything in it is private"
rm -r "$store"
"$siltfs" mkfs "$store"
mount_it
echo some >"$mnt/file"
chmod 600 "$mnt/file"
sync "$mnt/file"
[[ -S $store/control && $(mode "$store/control") == 600 ]] || fail "the socket has mode $(mode "$store/control")"
open_to_others=$(find "$store" -perm /077)
[[ -z $open_to_others ]] || fail "open to others: $open_to_others"

step "other users can neither read the store nor ask the daemon"
chmod 711 "$disk" # other users may pass the parent directory
refused as_nobody ls "$store"
refused as_nobody "$siltfs" stat "$store"
refused as_nobody "$siltfs" umount "$mnt"
mounted || fail "user nobody unmounted it"
# The socket's own mode protects it even if all users can enter the directory.
chmod 711 "$store"
refused as_nobody env PATH=/usr/bin:/bin python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$store/control"
grep -q PermissionError "$work/out" || fail "refused otherwise: $(cat "$work/out")"
chmod 700 "$store"

step "the kernel checks modes on a mount with allow_other"
refused as_nobody cat "$mnt/file"
chmod 644 "$mnt/file"
[[ $(as_nobody cat "$mnt/file") == some ]] || fail "another user cannot read a public file"
refused as_nobody sh -c "echo more >>'$mnt/file'"
grep -q " $mnt fuse.siltfs .*default_permissions" /proc/self/mounts || fail "the kernel does not check modes"
"$siltfs" umount "$mnt"

step "without allow_other no other user can use the mount"
"$siltfs" mount "$store" "$mnt" -o "log=$work/log"
grep -q " $mnt fuse.siltfs " /proc/self/mounts || fail "not in the mount table"
! grep -q " $mnt fuse.siltfs .*allow_other" /proc/self/mounts || fail "others are let in"
refused as_nobody cat "$mnt/file"

step "the log and the statistics hold no secret of the store"
"$siltfs" stat --json "$mnt" >"$work/figures"
unmount_and_check
for file in "$work/log" "$work/figures" "$work/fsck"; do
  python3 - "$store/superblock.0" "$file" <<'PYTHON' || fail "$file reveals a secret"
import re, sys
superblock = open(sys.argv[1], "rb").read()
said = open(sys.argv[2], "rb").read()
text = said.decode("utf-8", "replace").lower()
# Searches for the polynomial, and for any eight bytes of the tag secret (docs/format.md). Each may
# appear raw, in hexadecimal, or as a number.
for at in [80, *range(128, 128 + 192 - 7)]:
    piece = superblock[at : at + 8]
    numbers = [str(int.from_bytes(piece, order)) for order in ("little", "big")]
    if piece in said or any(n in text for n in [piece.hex(), piece[::-1].hex(), *numbers]):
        sys.exit(1)
PYTHON
done

step "symbolic links in a store are never followed"
theirs=$work/theirs
mkdir "$theirs"
echo precious >"$theirs/file"
mv "$store/segments" "$work/segments"
ln -s "$theirs" "$store/segments"
code=0
"$siltfs" mount "$store" "$mnt" >"$work/out" 2>&1 || code=$?
((code == 13)) || fail "a store with a link in place of its segments is mounted, or refused with $code"
grep -q "$store/segments: is a symbolic link" "$work/out" || fail "refused otherwise: $(cat "$work/out")"
code=0
"$siltfs" fsck -y "$store" >"$work/out" 2>&1 || code=$?
((code == 4)) || fail "fsck -y ends with $code: $(cat "$work/out")"
rm "$store/segments"
mv "$work/segments" "$store/segments"
rm -r "$store/index"
ln -s "$theirs" "$store/index"
mount_it
[[ $(cat "$mnt/file") == some ]] || fail "the file is not what it was"
unmount_and_check
[[ ! -L $store/index && $(ls "$theirs") == file && $(cat "$theirs/file") == precious ]] || fail "the link's target was changed: $(ls "$theirs")"

step "a symbolic link to the store itself works"
ln -s "$store" "$work/link"
store=$work/link
mount_it
[[ $(cat "$mnt/file") == some ]] || fail "the file is not what it was"
unmount_and_check

step "a user's own store and mount can be written by that user"
# On some machines only the superuser may open /dev/fuse. In this mount namespace every user may.
mkdir "$work/devices" "$work/own" "$disk/own"
mount -t tmpfs -o dev siltfs-test "$work/devices"
mknod --mode 666 "$work/devices/fuse" c 10 229
chmod 666 "$work/devices/fuse"
mount --bind "$work/devices/fuse" /dev/fuse
chown 65534:65534 "$work/own" "$disk/own"
chmod 711 "$disk"
store=$disk/own/store mnt=$work/own
as_nobody "$siltfs" mkfs "$store" >"$work/out" 2>&1
[[ ! -s $work/out ]] || fail "mkfs says: $(cat "$work/out")"
as_nobody "$siltfs" mount "$store" "$mnt"
mounted || fail "not in the mount table"
[[ $(as_nobody stat -c %u:%g:%a "$mnt") == 65534:65534:755 ]] || fail "the root directory is $(as_nobody stat -c %u:%g:%a "$mnt")"
as_nobody touch "$mnt/file"
as_nobody "$siltfs" umount "$mnt"
# The kernel frees the rings of a process, which use /dev/fuse, a moment after the process has ended.
for ((i = 0; i < 100; ++i)); do
  umount /dev/fuse 2>"$work/err" && break
  sleep 0.05
done
((i < 100)) || fail "the bind mount stays: $(cat "$work/err")"

step "the superuser gives the root directory to another user"
store=$disk/given
"$siltfs" mkfs --root-owner 65534:1 "$store"
mount_it
[[ $(stat -c %u:%g:%a "$mnt") == 65534:1:755 ]] || fail "the root directory is $(stat -c %u:%g:%a "$mnt")"
as_nobody touch "$mnt/file"
unmount_and_check

step "mkfs warns the superuser, once, of a directory that another user owns"
warned() { # STORE DIRECTORY WHAT
  "$siltfs" mkfs "$1" >"$work/out" 2>&1
  [[ $(cat "$work/out") == "siltfs: warning: $2: the directory belongs to user 65534; this user can replace the $3 [S0903]" ]] || fail "mkfs says: $(cat "$work/out")"
}
mkdir "$disk/theirs"
chown 65534 "$disk/theirs"
warned "$disk/theirs" "$disk/theirs" "store's files"
warned "$disk/own/second" "$disk/own" "whole store"
mkdir "$disk/own/third"
chown 65534 "$disk/own/third"
warned "$disk/own/third" "$disk/own/third" "store's files"
