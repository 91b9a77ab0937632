#!/bin/bash
# Read-only mounts of a bucket follow the writer, which is mounted elsewhere: they show its commits,
# the writer keeps what they show, and mounts that are gone do not hold space for ever.
#
#   bucket_follower_test.sh SILTFS S3_SERVER
set -euo pipefail

siltfs=$1
server=$2
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/s3_service.sh
source "$(dirname "$0")/s3_service.sh"

reader=$work/reader
second=$work/second
other=$work/other
mkdir "$reader" "$second" "$other"
kill_daemon() { # MOUNTPOINT
  local daemon
  daemon=$("$siltfs" stat "$1" --json | jq .pid)
  kill -KILL "$daemon"
  while kill -0 "$daemon" 2>/dev/null; do sleep 0.05; done
  umount --lazy "$1"
}
write_mount() { # MOUNTPOINT DIRECTORY [ARGUMENT...]
  "$siltfs" mount s3://bucket/a "$1" --cache "$2" --endpoint "$endpoint" -o "log=$work/log,bucket_timeout=20,nogc" "${@:3}"
}
read_mount() { # MOUNTPOINT DIRECTORY [ARGUMENT...]
  "$siltfs" mount s3://bucket/a "$1" --cache "$2" --endpoint "$endpoint" \
    -o "ro,follow=1,reader_age=8,log=$work/log,bucket_timeout=20" "${@:3}"
}
# Brings everything to the bucket, and waits until the reader shows it.
await_reader() { # WRITER READER
  local newest
  "$siltfs" sync "$1"
  await_bucket "$1"
  newest=$(bucket "$1" shipped_commit)
  for _ in $(seq 600); do
    (($(bucket "$2" shown_commit) >= newest)) && return
    sleep 0.1
  done
  fail "the reader stays behind $newest: $("$siltfs" stat "$2" --json | jq -c .bucket)"
}
# Waits until a value of the statistics is as expected.
await() { # MOUNTPOINT KEY VALUE
  for _ in $(seq 600); do
    [[ $(bucket "$1" "$2") == "$3" ]] && return
    sleep 0.1
  done
  fail "$2 is not $3: $("$siltfs" stat "$1" --json | jq -c .bucket)"
}
same() { diff -r "$1" "$2" || fail "the reader shows other files"; }
refused() { # MESSAGE COMMAND...
  local code=0
  "${@:2}" 2>"$work/err" || code=$?
  ((code != 0)) || fail "not refused: ${*:2}"
  grep -q -- "$1" "$work/err" || fail "$(cat "$work/err")"
}

step "a reader beside a writer"
"$siltfs" mkfs "$store" --bucket s3://bucket/a --endpoint "$endpoint" --cache 256M
"$siltfs" mount "$store" "$mnt" -o "log=$work/log,nogc"
noise 40M 1 >"$mnt/large"
mkdir "$mnt/tree"
for i in $(seq 100); do echo "$i" >"$mnt/tree/$i"; done
ln -s tree "$mnt/link"
setfattr -n user.note -v kept "$mnt/large"
"$siltfs" sync "$mnt"
await_bucket "$mnt"
read_mount "$reader" "$disk/reader"
same "$mnt" "$reader"
[[ $(getfattr --only-values -n user.note "$reader/large") == kept ]] || fail "no attribute"
[[ $(readlink "$reader/link") == tree ]] || fail "another link"
[[ $(bucket "$reader" follows) == true ]] || fail "$("$siltfs" stat "$reader" --json | jq -c .bucket)"
await_reader "$mnt" "$reader"
[[ $(bucket "$mnt" epoch) == "$(bucket "$reader" epoch)" && $(bucket "$mnt" fenced) == false ]] || fail "another epoch"

step "the reader refuses changes, and mounts that cannot be"
for change in "touch $reader/new" "mkdir $reader/new" "rm $reader/large" "chmod 600 $reader/large"; do
  refused "Read-only file system" $change
done
refused "so give one with --cache" read_mount "$second" "$store"
refused "leave out --take-over" read_mount "$second" "$disk/other" --take-over
refused "look into the directory .snapshots" read_mount "$second" "$disk/other" -o snapshot=a
refused "S" "$siltfs" gc "$reader"

step "what the kernel knows follows the writer"
[[ ! -e $reader/later && $(stat -c %s "$reader/large") == $((40 << 20)) ]] || fail "other files"
ls "$reader" "$reader/tree" >/dev/null
exec 8<"$reader/large" 9<"$reader/tree/7"
echo later >"$mnt/later"
noise 1M 2 | dd of="$mnt/large" conv=notrunc bs=1M seek=3 status=none
truncate -s 30M "$mnt/large"
rm "$mnt/tree/7"
mv "$mnt/tree/8" "$mnt/tree/moved"
echo other >"$mnt/tree/9"
"$siltfs" snapshot create "$mnt" first >/dev/null
await_reader "$mnt" "$reader"
same "$mnt" "$reader"
[[ $(cat "$reader/later") == later && ! -e $reader/tree/7 && $(cat "$reader/tree/9") == other ]] || fail "old files"
[[ $(stat -c %s "$reader/large") == $((30 << 20)) ]] || fail "an old size: $(stat -c %s "$reader/large")"
cmp - "$mnt/large" <&8 || fail "an open file has other bytes"
# The removed file can still be read, if the writer has not deleted it yet, or its reads fail.
bytes=$(cat <&9 2>/dev/null) || true
[[ -z $bytes || $bytes == 7 ]] || fail "a removed file has other bytes: $bytes"
exec 8<&- 9<&-
[[ $(ls "$reader/.snapshots") == first ]] || fail "no snapshot"
same "$mnt/.snapshots/first" "$reader/.snapshots/first"

step "garbage collection keeps what the reader shows, while it reads"
(
  while [[ ! -e $work/stop ]]; do
    for file in "$reader"/kept-*; do
      [[ $(sha256sum <"$file") == "$(cat "$work/sum-${file##*-}")" ]] || { echo "$file" >>"$work/wrong"; exit 1; }
    done
  done
) 2>"$work/wrong-err" &
pid=$!
for round in 1 2 3; do
  noise 35M "a$round" >"$mnt/gone-$round"
  noise 3M "b$round" | tee "$mnt/.kept" | sha256sum >"$work/sum-$round"
  mv "$mnt/.kept" "$mnt/kept-$round"
  rm -f "$mnt/gone-$((round - 1))"
  await_reader "$mnt" "$reader"
  "$siltfs" gc "$mnt" >/dev/null
  await_reader "$mnt" "$reader"
  kill -0 $pid 2>/dev/null || fail "a read failed: $(cat "$work/wrong" "$work/wrong-err")"
done
rm "$mnt"/gone-*
"$siltfs" snapshot delete "$mnt" first >/dev/null
await_reader "$mnt" "$reader"
"$siltfs" gc "$mnt" >/dev/null
await_reader "$mnt" "$reader"
await "$mnt" readers 1
await "$mnt" deletions_waiting 0
touch "$work/stop"
wait $pid || fail "a read failed: $(cat "$work/wrong" "$work/wrong-err")"
same "$mnt" "$reader"

step "two readers, and one that is killed"
read_mount "$second" "$disk/second"
same "$reader" "$second"
await "$mnt" readers 2
kill_daemon "$second"
noise 40M 5 >"$mnt/gone"
await_reader "$mnt" "$reader"
rm "$mnt/gone"
await_reader "$mnt" "$reader"
"$siltfs" gc "$mnt" >/dev/null
await_reader "$mnt" "$reader"
await "$mnt" deletions_waiting 0 # its object has aged out
await "$mnt" readers 1
same "$mnt" "$reader"
read_mount "$second" "$disk/second"
same "$reader" "$second"
"$siltfs" umount "$second"

step "a reader that was asleep catches up"
daemon=$("$siltfs" stat "$reader" --json | jq .pid)
kill -STOP "$daemon"
noise 40M 6 >"$mnt/large"
"$siltfs" sync "$mnt"
await_bucket "$mnt"
"$siltfs" gc "$mnt" >/dev/null
await "$mnt" readers 0
await "$mnt" deletions_waiting 0
kill -CONT "$daemon"
await_reader "$mnt" "$reader"
same "$mnt" "$reader"

step "the writer is killed, and another machine takes over"
echo before >"$mnt/before"
await_reader "$mnt" "$reader"
kill_daemon "$mnt"
[[ $(cat "$reader/before") == before ]] || fail "the reader needs the writer"
write_mount "$other" "$disk/elsewhere" --take-over
echo after >"$other/after"
noise 10M 7 >"$other/large"
await_reader "$other" "$reader"
same "$other" "$reader"
[[ $(cat "$reader/before" "$reader/after") == $'before\nafter' ]] || fail "old files"
await "$other" readers 1

step "the bucket is silent for a while"
control '{"fault": "status", "on": "*", "status": 503, "times": 1000000}'
ls -R "$reader" >/dev/null || fail "the reader cannot list"
control '{"heal": true}'
echo healed >"$other/healed"
await_reader "$other" "$reader"
[[ $(cat "$reader/healed") == healed ]] || fail "an old file"

step "the end"
"$siltfs" umount "$reader"
"$siltfs" umount "$other"
read_mount "$reader" "$disk/reader" # also without a writer
[[ $(cat "$reader/healed") == healed ]] || fail "an old file"
"$siltfs" umount "$reader"
"$siltfs" fsck -n --data "$disk/elsewhere" >"$work/fsck" || fail "$(cat "$work/fsck")"
