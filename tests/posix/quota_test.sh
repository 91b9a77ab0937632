#!/bin/bash
# Quotas with the real program: what programs and df see, what is counted, what the kernel's cache
# may hide for a while, and what the commands print.
#
#   quota_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/command_checks.sh
source "$(dirname "$0")/command_checks.sh"

# The exit code must be CODE.
quota() { run_json "$1" quota "${@:2}"; } # CODE ARGUMENT...
# The command must fail, and say so with this error.
fails_with() { # ERROR COMMAND...
  if "${@:2}" 2>"$work/error"; then fail "${*:2} has succeeded"; fi
  grep -q "$1" "$work/error" || fail "${*:2}: $(cat "$work/error")"
}
exceeds() { fails_with "Disk quota exceeded" "$@"; }

step "a new quota"
make_and_mount
mkdir "$mnt/alice" "$mnt/bob"
quota 0 set "$mnt/alice" --bytes 8M --files 20
holds '.path == "/alice" and .bytes_limit == 8388608 and .files_limit == 20 and .bytes == 0'
quota 0 show "$mnt/alice"
holds '.quotas[0].files == 0'
mkdir "$mnt/alice/sub"
noise 3M a >"$mnt/alice/sub/file"
"$siltfs" sync "$mnt"
quota 0 show "$mnt/alice/sub"
holds '.quotas[0] | .bytes == 3145728 and .files == 2 and .path == "/alice"'

step "df shows the limits"
[[ $(stat --file-system --format '%b %f %c %d %S' "$mnt/alice/sub") == "2048 1280 20 18 4096" ]] ||
  fail "statfs: $(stat --file-system --format '%b %f %c %d %S' "$mnt/alice/sub")"
(($(stat --file-system --format '%b' "$mnt") > 4096)) || fail "the quota limits the whole mount"

step "writes beyond the limit fail"
exceeds dd if=/dev/urandom of="$mnt/alice/big" bs=64K count=200 status=none
quota 0 show "$mnt/alice"
holds '.quotas[0].bytes <= 8388608'
holds '.quotas[0].bytes > 8000000'
# What was accepted is there.
(($(stat -c %s "$mnt/alice/big") > 4000000)) || fail "the file has $(stat -c %s "$mnt/alice/big") bytes"
dd if=/dev/urandom of="$mnt/alice/big" bs=64K count=20 conv=notrunc status=none
rm "$mnt/alice/big"
noise 5M b >"$mnt/alice/fits"
exceeds cp "$mnt/alice/sub/file" "$mnt/alice/copy"
exceeds fallocate -l 1M "$mnt/alice/allocated"
truncate -s 1G "$mnt/alice/sparse"
rm "$mnt/alice/fits" "$mnt/alice/copy" "$mnt/alice/allocated"

step "an open file learns of the limit at fsync"
quota 0 set "$mnt/alice" --bytes 400M
noise 1 c >"$mnt/alice/cached"
exec 3<>"$mnt/alice/cached" # opened while there is room
quota 0 set "$mnt/alice" --bytes 4M
if dd if=/dev/urandom of=/dev/fd/3 bs=1M count=4 conv=fsync,notrunc status=none 2>"$work/error"; then
  fail "the data was written"
fi
grep -q "Disk quota exceeded\|Input/output error" "$work/error" || fail "$(cat "$work/error")"
exec 3>&- || true
rm "$mnt/alice/cached"
quota 0 set "$mnt/alice" --bytes 8M

step "data that exceed a limit do not keep the limit from being raised"
# Opens a file while there is room, and writes 2 MiB that the kernel keeps. A shell cannot do that:
# the end of each command that it starts would close the file, which writes it back.
late_writer() {
  coproc writer { python3 -c '
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
print("open", flush=True)
sys.stdin.readline()
os.write(file, b"siltfs" * 349525)
print("written", flush=True)
sys.stdin.readline()
os.close(file)' "$mnt/alice/cached"; }
  read -r <&"${writer[0]}"
}
writer_goes_on() { echo >&"${writer[1]}"; }
quota 0 set "$mnt/alice" --bytes 400M
late_writer
quota 0 set "$mnt/alice" --bytes 4M
writer_goes_on
read -r <&"${writer[0]}"
quota 0 set "$mnt/alice" --bytes 400M
writer_goes_on
wait "$writer_PID" || fail "the data did not get the new limit"
(($(stat -c %s "$mnt/alice/cached") == 2097150)) || fail "the data are not there"
rm "$mnt/alice/cached"
late_writer
quota 0 set "$mnt/alice" --bytes 4M
writer_goes_on
read -r <&"${writer[0]}"
mkdir "$mnt/bob/new"
quota 0 set "$mnt/bob/new" --files 10
quota 0 remove "$mnt/bob/new"
rmdir "$mnt/bob/new"
writer_goes_on
wait "$writer_PID" || true
rm "$mnt/alice/cached"
quota 0 set "$mnt/alice" --bytes 8M

step "data that were refused do not fail the commands of others"
quota 0 set "$mnt/alice" --bytes 400M
late_writer
quota 0 set "$mnt/alice" --bytes 4M
writer_goes_on
read -r <&"${writer[0]}"
writer_goes_on
if wait "$writer_PID" 2>/dev/null; then fail "the data were accepted"; fi
# The next call of syncfs(2) has the error.
"$siltfs" du "$mnt/bob" >"$work/out"
rm "$mnt/alice/cached"
quota 0 set "$mnt/alice" --bytes 8M

step "files beyond the limit fail"
for ((i = 0; i < 17; ++i)); do : >"$mnt/alice/$i"; done
exceeds touch "$mnt/alice/one-more"
exceeds mkdir "$mnt/alice/sub/one-more"
exceeds ln -s x "$mnt/alice/one-more"
ln "$mnt/alice/0" "$mnt/alice/link"
rm "$mnt/alice/"[0-9]*

step "mv copies between quotas"
noise 100K d >"$mnt/outside"
fails_with "cross-device link" ln "$mnt/outside" "$mnt/alice/linked"
mv "$mnt/outside" "$mnt/alice/moved"
noise 100K d | cmp - "$mnt/alice/moved"
mv "$mnt/alice/moved" "$mnt/bob/"
noise 100K d | cmp - "$mnt/bob/moved"
mv "$mnt/alice" "$mnt/bob/alice"
quota 0 show "$mnt"
holds '.quotas | length == 1'
holds '.quotas[0].path == "/bob/alice"'
mv "$mnt/bob/alice" "$mnt/alice"

step "imports and clones count"
mkdir "$work/source"
noise 6M e >"$work/source/large"
"$siltfs" import "$work/source" "$mnt/bob" >"$work/out"
if "$siltfs" import "$work/source" "$mnt/alice/imported" >"$work/out" 2>"$work/error"; then fail "the import has succeeded"; fi
grep -qi "quota" "$work/error" || fail "$(cat "$work/error")"
if "$siltfs" clone "$mnt/bob" "$mnt/alice/cloned" 2>"$work/error"; then fail "the clone has succeeded"; fi
grep -qi "quota" "$work/error" || fail "$(cat "$work/error")"
rm -rf "$mnt/alice/imported"

step "the usage survives a killed daemon and is exact"
noise 2M f >"$mnt/alice/synced"
sync "$mnt/alice/synced"
kill -KILL "$("$siltfs" stat --json "$mnt" | jq .pid)"
umount --lazy "$mnt"
"$siltfs" fsck "$store" >"$work/out" || fail "$(cat "$work/out")"
mount_it
quota 0 show "$mnt"
used=$(jq '.quotas[0].bytes' "$work/json")
((used == $(find "$mnt/alice" -type f -links 1 -printf '%b\n' | awk '{s += $1} END {print s * 512}'))) || fail "$used bytes"

step "a quota of a full directory, and its removal"
quota 0 set "$mnt/bob" --files 100
holds '.bytes > 6000000 and .bytes_limit == null and .files == 3'
quota 2 set "$mnt" --files 100
says "quotas are not nested"
quota 2 set "$mnt/bob"
says "needs --bytes SIZE, --files NUMBER, or both"
quota 2 set "$mnt/bob" --bytes many
says "not a size"
quota 1 set "$mnt/nowhere" --files 3
says "there is no such directory"
"$siltfs" snapshot create "$mnt" kept >"$work/out"
for directory in .snapshots .snapshots/kept .snapshots/kept/alice; do
  quota 1 set "$mnt/$directory" --files 3
  says "a snapshot has no quotas"
  quota 1 show "$mnt/$directory"
  says "a snapshot has no quotas"
done
quota 10 set "$work" --files 3
says "is not in a mounted siltfs file system"
quota 0 remove "$mnt/alice"
quota 1 remove "$mnt/alice"
says "has no quota"
quota 1 show "$mnt/alice"
says "has no quota"
noise 9M g >"$mnt/alice/large"
"$siltfs" quota show "$mnt" >"$work/out"
grep -q "no limit .* of  *100 files  $mnt/bob\$" "$work/out" || fail "$(cat "$work/out")"

step "the store is sound"
"$siltfs" umount "$mnt"
"$siltfs" fsck "$store" >"$work/out" || fail "$(cat "$work/out")"
