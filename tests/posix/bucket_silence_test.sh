#!/bin/bash
# A bucket that takes requests and does not answer, while a store is mounted on it: writers wait when
# the cache is full, everything else goes on, and mounts and commands end when they are asked to.
#
# The deadlines only keep a failure from hanging: each is far beyond what the step needs.
#
#   bucket_silence_test.sh SILTFS S3_SERVER
set -euo pipefail

siltfs=$1
server=$2
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/s3_service.sh
source "$(dirname "$0")/s3_service.sh"

guard=400
mount_store() { "$siltfs" mount "$store" "$mnt" -o "log=$work/log,bucket_timeout=$1"; } # SECONDS
daemon_of() { "$siltfs" stat "$mnt" --json | jq .pid; }
silence() { control '{"fault": "stall", "on": "*", "times": 1000000}'; }
heal() { control '{"heal": true}'; }
# Waits until the command succeeds.
await() { # WHAT COMMAND...
  local what=$1
  shift
  for _ in $(seq $((guard * 5))); do
    "$@" && return
    sleep 0.2
  done
  fail "$what: never; $("$siltfs" stat "$mnt" --json 2>&1 | jq -c .bucket || true)"
}
is_full() { [[ $(timeout $guard "$siltfs" stat "$mnt" --json | jq -r .bucket.cache_full) == true ]]; }
has_ended() { ! kill -0 "$1" 2>/dev/null; } # PID
# The number of requests that the service has not answered. Not in a subshell, which has no service.
count_stalled() {
  control '{"log": true}'
  stalled=$(jq '[.log[] | select(.[3] == 0)] | length' <<<"$answer")
}
has_stalled_request() { # since `before`
  count_stalled
  ((stalled > before))
}

step "a full cache lets writers wait, and commands go on"
"$siltfs" mkfs "$store" --bucket s3://bucket/a --endpoint "$endpoint" --cache 256M
mount_store 3600
daemon=$(daemon_of)
noise 10M acknowledged >"$mnt/acknowledged"
"$siltfs" sync "$mnt"
silence
noise 420M big >"$mnt/big" &
writer=$!
await "the cache is full" is_full
timeout $guard "$siltfs" stat "$mnt" --json >"$work/stat" || fail "stat does not answer"
(($(jq .bucket.waiting_segments "$work/stat") > 5)) || fail "stat does not say why: $(cat "$work/stat")"
! has_ended "$writer" || fail "the writer has not waited"

step "it goes on by itself when the bucket is back"
heal
await "the writer ends" has_ended "$writer"
wait "$writer" || fail "the writer has failed"
await_bucket "$mnt"
cmp "$mnt/big" <(noise 420M big) || fail "other bytes"

step "a signal ends the mount while the cache is full, and nothing is lost that was acknowledged"
silence
noise 420M second | dd of="$mnt/second" bs=1M iflag=fullblock conv=fsync status=none 2>"$work/out" &
writer=$!
await "the cache is full again" is_full
kill -TERM "$daemon"
await "the daemon ends" has_ended "$daemon"
code=0
wait "$writer" || code=$?
! mounted || fail "still mounted"
heal
mount_store 3600
cmp "$mnt/acknowledged" <(noise 10M acknowledged) || fail "other bytes of what was acknowledged"
cmp "$mnt/big" <(noise 420M big) || fail "other bytes"
if ((code == 0)); then cmp "$mnt/second" <(noise 420M second) || fail "other bytes of the second file"; fi
rm "$mnt/second"
await_bucket "$mnt"
unmount_and_check

step "writers fail with ENOSPC after bucket_timeout, and go on when the bucket is back"
mount_store 2
silence
code=0
# The kernel writes later, so only fsync is sure to report the failure.
noise 420M third | timeout $guard dd of="$mnt/third" bs=1M iflag=fullblock conv=fsync status=none 2>"$work/out" || code=$?
((code != 0 && code != 124)) || fail "the writer has not failed ($code)"
grep -q "No space left" "$work/out" || fail "another error: $(cat "$work/out")"
heal
written() { noise 30M fourth 2>/dev/null >"$mnt/fourth" 2>/dev/null && cmp -s "$mnt/fourth" <(noise 30M fourth); }
await "writing goes on" written
await_bucket "$mnt"
rm -f "$mnt/third"
unmount_and_check

step "a scrub that waits for the bucket does not delay an unmount"
rm -rf "$store/bucket.cache/files"/*.obj
mount_store 3600
silence
count_stalled
before=$stalled
"$siltfs" scrub "$mnt" >/dev/null 2>&1 &
scrub=$!
await "the scrub waits for the bucket" has_stalled_request
timeout $guard "$siltfs" umount "$mnt" || fail "the unmount does not end"
wait "$scrub" || true

step "commands end by a signal while the bucket does not answer"
for command in "fsck -n" "index rebuild" "snapshot list" "report -o $work/page.html"; do
  count_stalled
  before=$stalled
  # shellcheck disable=SC2086
  "$siltfs" $command "$store" >"$work/out" 2>&1 &
  pid=$!
  await "$command waits for the bucket" has_stalled_request
  kill -TERM "$pid"
  code=0
  wait "$pid" || code=$?
  ((code != 0)) || fail "$command succeeds without the bucket"
  grep -qi interrupted "$work/out" || fail "$command was not interrupted: $(cat "$work/out")"
done
heal
"$siltfs" fsck -n "$store" >"$work/out" || fail "$(cat "$work/out")"

step "a cache on another file system is refused"
mv "$store/bucket.cache" "$work/cache"
mkdir "$store/bucket.cache"
mount -t tmpfs none "$store/bucket.cache"
for command in "mount $store $mnt" "tune $store --cache 300M"; do
  # shellcheck disable=SC2086
  ! "$siltfs" $command >"$work/out" 2>&1 || fail "$command: not refused"
  grep -q "another file system" "$work/out" || fail "$command: $(cat "$work/out")"
done
umount "$store/bucket.cache"
rmdir "$store/bucket.cache"
mv "$work/cache" "$store/bucket.cache"
mount_store 60
unmount_and_check
