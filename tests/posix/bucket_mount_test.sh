#!/bin/bash
# A store whose segments are in a bucket, with a real mount and a service of S3 that this test runs:
# mkfs, writes and reads through a small cache, a bucket that fails and comes back, a killed daemon,
# garbage collection, fsck, and the commands on a store that is not mounted.
#
#   bucket_mount_test.sh SILTFS S3_SERVER
set -euo pipefail

siltfs=$1
server=$2
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

step "a service"
# shellcheck source=tests/posix/s3_service.sh
source "$(dirname "$0")/s3_service.sh"
mkfs() { "$siltfs" mkfs "$@" --endpoint "$endpoint"; }
refused() { # WORDS COMMAND...
  local words=$1 code=0
  shift
  "$@" >"$work/out" 2>&1 || code=$?
  ((code != 0)) || fail "not refused: $*"
  grep -q -- "$words" "$work/out" || fail "$* does not say \"$words\": $(cat "$work/out")"
  ! grep -q test-secret "$work/out" || fail "$* shows the secret"
}
# Most mounts have a long timeout, because the service is slow on a busy machine.
mount_store() { "$siltfs" mount "$store" "$mnt" -o "log=$work/log,bucket_timeout=${1:-60}"; } # [SECONDS]

step "mkfs refuses buckets that it cannot use, and leaves nothing"
refused "no part of the prefix may be empty" mkfs "$store" --bucket s3://bucket/../a
refused "there is no bucket" mkfs "$store" --bucket s3://missing/a
refused "credentials" env AWS_SECRET_ACCESS_KEY=other "$siltfs" mkfs "$store" --bucket s3://bucket/a --endpoint "$endpoint"
refused "there are no credentials" env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY "$siltfs" mkfs "$store" --bucket s3://bucket/a --endpoint "$endpoint"
refused "at least 256 MiB" mkfs "$store" --bucket s3://bucket/a --cache 1M
refused "need --bucket" mkfs "$store"
[[ ! -e $store ]] || fail "mkfs has left $(ls "$store")"

step "mkfs"
mkfs "$store" --bucket s3://bucket/a --cache 256M
refused "belongs to the store" mkfs "$disk/other" --bucket s3://bucket/a
[[ ! -e $disk/other ]] || fail "mkfs has left a store"

step "more data than the cache holds"
mount_store
[[ $(df --output=size -B1G "$mnt" | tail -1) -gt 1000000 ]] || fail "df shows the local disk"
for i in 1 2 3 4 5; do noise 80M "$i" >"$mnt/$i"; done
"$siltfs" sync "$mnt"
sums=$(cd "$mnt" && sha256sum [1-5])
"$siltfs" settle "$mnt" >/dev/null
await_bucket "$mnt"
"$siltfs" umount "$mnt"
(($(du -sB1 "$store/bucket.cache" | cut -f1) <= 257 << 20)) || fail "the cache is too large: $(du -s "$store/bucket.cache")"
mount_store
[[ $(cd "$mnt" && sha256sum [1-5]) == "$sums" ]] || fail "other bytes"
(($(bucket "$mnt" get_requests) > 10)) || fail "nothing was read from the bucket"
(($(du -sB1 "$store/bucket.cache" | cut -f1) <= 257 << 20)) || fail "the cache is too large: $(du -s "$store/bucket.cache")"

step "stat separates the cache from the bucket, and counts the requests"
"$siltfs" stat "$mnt" >"$work/out"
grep -q "^Bucket (s3://bucket/a)" "$work/out" || fail "no bucket: $(cat "$work/out")"
grep -qE "^  cache .* local, of 256.0 MiB" "$work/out" || fail "no cache: $(cat "$work/out")"
grep -qE "^  in the bucket +[34][0-9][0-9]\.. MiB" "$work/out" || fail "no bytes in the bucket: $(cat "$work/out")"
grep -qE "^  writer +$(hostname), epoch [0-9]+, lease until" "$work/out" || fail "no writer: $(cat "$work/out")"
grep -qE "^  requests .* PUT, .* GET" "$work/out" || fail "no requests: $(cat "$work/out")"
grep -q "USD a month for storage" "$work/out" || fail "no estimate: $(cat "$work/out")"
grep -q "siltfs tune --bucket-prices" "$work/out" || fail "does not say whose prices: $(cat "$work/out")"
# The first mount has put the segments, this one has not.
(($(bucket "$mnt" total.put_requests) > $(bucket "$mnt" put_requests))) || fail "no requests of earlier mounts"
(($(bucket "$mnt" total.sent_bytes) > 300 << 20)) || fail "no bytes of earlier mounts"
# metrics and check-health show the same
"$siltfs" metrics "$mnt" >"$work/out"
for family in behind_seconds waiting_segments cache_bytes 'requests_total{.*kind="put"}' outage_seconds stored_bytes request_cost_total; do
  grep -q "^siltfs_bucket_$family" "$work/out" || fail "metrics lack $family"
done
no_disk=(--full 0 --nearly-full 0) # the disk of this machine may be nearly full
"$siltfs" check-health "${no_disk[@]}" "$mnt" >"$work/out" || fail "$(cat "$work/out")"
grep -q "'bucket_behind'=" "$work/out" || fail "$(cat "$work/out")"

step "a bucket that fails delays reads, which then fail; nothing is damaged"
"$siltfs" umount "$mnt"
mount_store 2
echo 3 >/proc/sys/vm/drop_caches
control '{"fault": "status", "on": "*", "status": 503, "times": 1000000}'
code=0
(cd "$mnt" && sha256sum [1-5]) >"$work/out" 2>&1 || code=$?
((code != 0)) || fail "all bytes were read without the bucket"
grep -q "Input/output error" "$work/out" || fail "$(cat "$work/out")"
noise 30M 6 >"$mnt/6" # the local disk takes writes
"$siltfs" sync "$mnt"
for _ in $(seq 600); do
  (($(bucket "$mnt" 'outage_seconds > 0' | sed "s/true/1/;s/false/0/"))) && (($(bucket "$mnt" commits_behind) > 0)) && break
  sleep 0.1
done
"$siltfs" stat "$mnt" >"$work/out"
grep -qE "^  outage +[0-9,]+ s" "$work/out" || fail "stat shows no outage: $(cat "$work/out")"
grep -qE "^  behind +[0-9,]+ s +[0-9]+ commits" "$work/out" || fail "stat shows no lag: $(cat "$work/out")"
grep -qE "^  last error .* UTC: .*no usable answer" "$work/out" || fail "stat shows no error: $(cat "$work/out")"
sleep 2
code=0
"$siltfs" check-health "${no_disk[@]}" "$mnt" --bucket-lag 1 >"$work/out" || code=$?
((code == 1)) || fail "check-health ends with $code: $(cat "$work/out")"
grep -q "seconds behind" "$work/out" || fail "$(cat "$work/out")"
grep -q "has not answered for" "$work/out" || fail "$(cat "$work/out")"
control '{"heal": true}'
# For a moment, reads still fail at once, until one of them finds that the bucket answers again.
for _ in $(seq 100); do
  again=$(cd "$mnt" && sha256sum [1-5] 2>/dev/null) && break
  sleep 0.2
done
[[ $again == "$sums" ]] || fail "other bytes after the failure: $again"
[[ $("$siltfs" stat "$mnt" --json | jq .damaged_blocks) == 0 ]] || fail "damage was recorded"
"$siltfs" umount "$mnt"
mount_store

step "a killed daemon"
daemon=$("$siltfs" stat "$mnt" --json | jq .pid)
noise 60M 7 >"$mnt/7"
"$siltfs" sync "$mnt"
sums=$(cd "$mnt" && sha256sum [1-7])
kill -KILL "$daemon"
while kill -0 "$daemon" 2>/dev/null; do sleep 0.05; done
umount --lazy "$mnt"
mount_store
[[ $(cd "$mnt" && sha256sum [1-7]) == "$sums" ]] || fail "other bytes after the crash"

step "garbage collection deletes objects"
rm "$mnt"/[1-4]
"$siltfs" gc "$mnt" >/dev/null
for _ in $(seq 300); do
  (($(bucket "$mnt" deletions_waiting) == 0)) && break
  sleep 0.1
done
(($(bucket "$mnt" delete_requests) > 5)) || fail "no object was deleted"
unmount_and_check

step "the commands on a store that is not mounted"
for command in "gc" "settle" "scrub" "stat" "index verify" "index rebuild" "snapshot list"; do
  # shellcheck disable=SC2086
  "$siltfs" $command "$store" >"$work/out" 2>&1 || fail "$command: $(cat "$work/out")"
done
"$siltfs" report "$store" -o "$work/page.html" 2>/dev/null
"$siltfs" fsck -y "$store" >"$work/out" || fail "$(cat "$work/out")"

step "a store that is not mounted shows its lag, and writes nothing"
files=$(cd "$store" && find . -type f -printf "%P %s %T@\n" | sort)
"$siltfs" stat "$store" --json >"$work/out"
[[ $(jq '.bucket.commits_behind + .bucket.waiting_segments' "$work/out") == 0 ]] || fail "behind: $(jq -c .bucket "$work/out")"
[[ $(jq -r .bucket.writer "$work/out") == "$(hostname)" ]] || fail "no writer: $(jq -c .bucket "$work/out")"
[[ $(cd "$store" && find . -type f -printf "%P %s %T@\n" | sort) == "$files" ]] || fail "stat has changed the store"

step "prices"
"$siltfs" tune "$store" --bucket-prices put=10,get=0,currency=EUR
"$siltfs" stat "$store" --json >"$work/out"
[[ $(jq '.bucket.prices == {are_defaults: false, currency: "EUR", egress: 0.09, get: 0, put: 10, storage: 0.023}' "$work/out") == true ]] ||
  fail "prices: $(jq -c .bucket.prices "$work/out")"
[[ $(jq '.bucket | (.estimated_cost.total_requests - (.total.put_requests + .total.list_requests) / 100) | fabs < 1e-9' "$work/out") == true ]] ||
  fail "estimate: $(jq -c .bucket "$work/out")"
"$siltfs" tune "$store" --bucket-prices default

step "another bucket file"
cp "$store/bucket" "$work/bucket"
rm "$store/bucket"
refused "siltfs tune --bucket" "$siltfs" mount "$store" "$mnt"
refused "siltfs tune --bucket" "$siltfs" fsck -n "$store"
"$siltfs" tune "$store" --bucket s3://bucket/a --endpoint "$endpoint" --cache 256M
cmp "$store/bucket" "$work/bucket" || fail "tune writes another file"
mkfs "$disk/other" --bucket s3://bucket/b
"$siltfs" tune "$store" --bucket s3://bucket/b
refused "belongs to the store" "$siltfs" mount "$store" "$mnt"
"$siltfs" tune "$store" --bucket s3://bucket/a
mount_store
(cd "$mnt" && sha256sum -c --quiet <(grep -E " [567]$" <<<"$sums")) || fail "other bytes at the end"

step "what waits when the mount has ended is known, and how long the bucket lacks it"
await_bucket "$mnt"
control '{"fault": "status", "on": "PUT", "status": 503, "times": 1000000}'
noise 50M 9 >"$mnt/9"
"$siltfs" sync "$mnt"
"$siltfs" umount "$mnt"
control '{"heal": true}'
"$siltfs" stat "$store" --json >"$work/out"
[[ $(jq '.bucket | .waiting_segments > 0 and .waiting_bytes > 20000000 and .commits_behind > 0 and .commit_seconds_behind >= 10' "$work/out") == true ]] ||
  fail "what waits: $(jq -c .bucket "$work/out")"
"$siltfs" mount "$store" "$mnt" -o "ro,log=$work/log"
[[ $(bucket "$mnt" 'waiting_segments > 0') == true ]] || fail "a read-only mount shows nothing that waits"
"$siltfs" umount "$mnt"
mount_store
await_bucket "$mnt"
"$siltfs" umount "$mnt"

step "the service is gone"
mount_store 2
kill "$service_PID"
wait "$service_PID" 2>/dev/null || true
noise 20M 8 >"$mnt/8"
"$siltfs" sync "$mnt"
"$siltfs" umount "$mnt"
refused "no usable answer" "$siltfs" mount "$store" "$mnt" -o bucket_timeout=1
! mounted || fail "mounted without the bucket"
