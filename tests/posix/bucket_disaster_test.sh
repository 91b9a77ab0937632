#!/bin/bash
# A machine is lost with its disk: its store is made again from the bucket, on an empty machine, again
# and again under load. A second machine takes over, and the first one is fenced.
#
#   bucket_disaster_test.sh SILTFS S3_SERVER
set -euo pipefail

siltfs=$1
server=$2
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/s3_service.sh
source "$(dirname "$0")/s3_service.sh"

here=$disk/here
elsewhere=$disk/elsewhere
mnt2=$work/mnt2
mkdir "$mnt2"
log() { echo "log=$work/log"; }
kill_daemon() { # MOUNTPOINT
  local daemon
  daemon=$("$siltfs" stat "$1" --json | jq .pid)
  kill -KILL "$daemon"
  while kill -0 "$daemon" 2>/dev/null; do sleep 0.05; done
  umount --lazy "$1"
}
from_bucket() { # MOUNTPOINT DIRECTORY [ARGUMENT...]
  "$siltfs" mount s3://bucket/a "$1" --cache "$2" --endpoint "$endpoint" -o "$(log),bucket_timeout=20" "${@:3}"
}

step "a store, and what the bucket has of it"
"$siltfs" mkfs "$here" --bucket s3://bucket/a --endpoint "$endpoint" --cache 256M
"$siltfs" mount "$here" "$mnt" -o "$(log)"
noise 50M 1 >"$mnt/large"
mkdir "$mnt/tree"
for i in $(seq 300); do echo "$i" >"$mnt/tree/$i"; done
ln "$mnt/large" "$mnt/link"
setfattr -n user.note -v kept "$mnt/large"
"$siltfs" sync "$mnt"
await_bucket "$mnt"
sum=$(sha256sum <"$mnt/large")

step "the machine is lost"
kill_daemon "$mnt"
rm -rf "$here"
code=0
from_bucket "$mnt" "$elsewhere" 2>"$work/err" || code=$?
((code == 11)) || fail "not refused while the lease lasts: $code $(cat "$work/err")"
grep -q -- "--take-over" "$work/err" || fail "$(cat "$work/err")"
[[ ! -e $elsewhere/meta && ! -e $elsewhere/segments ]] || fail "the refused mount has restored: $(ls "$elsewhere")"
from_bucket "$mnt" "$elsewhere" --take-over
[[ $(sha256sum <"$mnt/large") == "$sum" ]] || fail "other bytes"
[[ $(cat "$mnt"/tree/* | sort -n | tail -1) == 300 && $(ls "$mnt/tree" | wc -l) == 300 ]] || fail "other files"
[[ $(stat -c %h "$mnt/link") == 2 && $(getfattr --only-values -n user.note "$mnt/link") == kept ]] || fail "other attributes"
"$siltfs" umount "$mnt"
"$siltfs" fsck -n --data "$elsewhere" >"$work/fsck" || fail "$(cat "$work/fsck")"

step "sync=bucket: what fsync has acknowledged is there, whenever the machine is lost"
directory=$elsewhere
for round in 1 2 3; do
  from_bucket "$mnt" "$directory" -o sync=bucket --take-over
  (
    # Relative paths: once the machine is lost, they never lead to the directory below the mount.
    cd "$mnt"
    i=0
    while i=$((i + 1)); do
      head -c $((RANDOM * 4)) /dev/urandom >"$round-$i" || exit 0
      sync "$round-$i" && sync . || exit 0
      sha256sum "$round-$i" >>"$work/acknowledged" || exit 0
    done
  ) 2>/dev/null &
  writer=$!
  until [[ -s $work/acknowledged && $(grep -c " $round-" "$work/acknowledged") -ge $((round * 4)) ]]; do
    kill -0 "$writer" || fail "a write fails although the machine is there"
    sleep 0.05
  done
  kill_daemon "$mnt"
  wait "$writer" 2>/dev/null || true
  rm -rf "$directory"
  directory=$disk/round-$round
  from_bucket "$mnt" "$directory" --take-over
  (cd "$mnt" && sha256sum --check --quiet) <"$work/acknowledged" || fail "an acknowledged file is lost"
  "$siltfs" umount "$mnt"
  "$siltfs" fsck -n --data "$directory" >"$work/fsck" || fail "$(cat "$work/fsck")"
done

step "another machine takes over, and the first one is fenced"
from_bucket "$mnt" "$directory"
echo first >"$mnt/first"
"$siltfs" sync "$mnt"
await_bucket "$mnt"
code=0
from_bucket "$mnt2" "$disk/second" 2>/dev/null || code=$?
((code == 11)) || fail "two machines: $code"
rm -rf "$disk/second"
from_bucket "$mnt2" "$disk/second" --take-over
[[ $(cat "$mnt2/first") == first ]] || fail "the second machine lacks a file"
echo second >"$mnt2/second"
"$siltfs" sync "$mnt2"
await_bucket "$mnt2"
refused=false
for i in $(seq 100); do
  if ! { echo late >"$mnt/late-$i" && "$siltfs" sync "$mnt"; } 2>/dev/null; then
    refused=true
    break
  fi
  sleep 0.2
done
$refused || fail "the fenced machine still takes writes"
echo more >"$mnt2/more"
code=0
"$siltfs" umount "$mnt" 2>"$work/err" || code=$?
((code != 0)) && grep -q "taken over the bucket" "$work/err" || fail "the unmount tells of no loss: $code $(cat "$work/err")"
"$siltfs" umount "$mnt2"
[[ ! -e $disk/second/late ]] || fail "a write of the fenced machine"
for repair in "fsck -y" "fsck -a" "index rebuild"; do
  code=0
  # shellcheck disable=SC2086
  "$siltfs" $repair "$directory" >"$work/out" 2>&1 || code=$?
  ((code != 0)) && grep -q "must not be changed from here" "$work/out" || fail "$repair of the fenced store: $code, $(cat "$work/out")"
done
from_bucket "$mnt" "$disk/second"
[[ $(cat "$mnt/more" "$mnt/second") == $'more\nsecond' ]] || fail "writes of the second machine are lost"
compgen -G "$mnt/late-*" >/dev/null && fail "the second machine has a write of the fenced one"
"$siltfs" umount "$mnt"
"$siltfs" fsck -n --data "$disk/second" >"$work/fsck" || fail "$(cat "$work/fsck")"

step "a restore that was interrupted begins again"
mkdir "$disk/third"
cp "$disk/second/bucket" "$disk/third/bucket"
mkdir "$disk/third/restore.unfinished" "$disk/third/meta"
echo rest >"$disk/third/meta/CURRENT"
# The unmount of the second machine has ended its lease.
from_bucket "$mnt" "$disk/third"
[[ $(cat "$mnt/more") == more ]] || fail "other files"
"$siltfs" umount "$mnt"

step "the fenced store refuses to go on"
code=0
"$siltfs" mount "$directory" "$mnt" -o "$(log)" 2>"$work/err" || code=$?
((code != 0)) || fail "mounted"
cat "$work/err"
