#!/bin/bash
# A store with files and snapshots moves to a bucket and back, by commands that are killed at several
# requests. siltfs bucket verify finds objects that were changed, with the store and without it.
#
#   bucket_convert_test.sh SILTFS S3_SERVER
set -euo pipefail

siltfs=$1
server=$2
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/s3_service.sh
source "$(dirname "$0")/s3_service.sh"

address=s3://bucket/a
restored=$disk/restored
push() { "$siltfs" bucket push "$store" "$@"; }
pull() { "$siltfs" bucket pull "$store" "$@"; }
verify() { "$siltfs" bucket verify "$@"; }
mount_store() { "$siltfs" mount "$store" "$mnt" -o "log=$work/log,bucket_timeout=60"; }
check_files() {
  mount_store
  [[ $(cd "$mnt" && sha256sum -- [1-9]* .snapshots/first/[1-9]*) == "$sums" ]] || fail "other bytes"
  "$siltfs" umount "$mnt"
}
exits() { # CODE WORDS COMMAND...
  local code=0
  "${@:3}" >"$work/out" 2>&1 || code=$?
  ((code == $1)) || fail "$code instead of $1: ${*:3}: $(cat "$work/out")"
  grep -q -- "$2" "$work/out" || fail "${*:3} does not say \"$2\": $(cat "$work/out")"
}
objects() { # PREFIX
  control "{\"keys\": \"a/$1\"}"
  jq -r '.keys[]' <<<"$answer"
}
stalled() {
  control '{"log": true}'
  jq '[.log[] | select(.[3] == 0)] | length' <<<"$answer"
}
# Runs a command, and kills it while the service keeps its request number N waiting. Succeeds if the
# command came to this request.
killed_at() { # N COMMAND...
  local before now
  stalled >"$work/stalled"
  before=$(cat "$work/stalled")
  control "{\"fault\": \"stall\", \"skip\": $1}"
  "${@:2}" >"$work/out" 2>&1 &
  local command=$!
  while kill -0 "$command" 2>/dev/null; do
    stalled >"$work/stalled"
    now=$(cat "$work/stalled")
    ((now > before)) && break
    sleep 0.05
  done
  kill -"${signal:-KILL}" "$command" 2>/dev/null || true
  wait "$command" 2>/dev/null || true
  control '{"heal": true}'
  ((now > before))
}

step "a store in its directory"
"$siltfs" mkfs "$store"
mount_store
for i in 1 2 3 4; do noise 40M "$i" >"$mnt/$i"; done
"$siltfs" sync "$mnt"
"$siltfs" snapshot create "$mnt" first >/dev/null
noise 5M 9 >"$mnt/4"
noise 30M 5 >"$mnt/5"
"$siltfs" sync "$mnt"
sums=$(cd "$mnt" && sha256sum -- [1-9]* .snapshots/first/[1-9]*)
exits 1 "unmount it, and move them with siltfs bucket push" "$siltfs" bucket push "$mnt"
exits 2 "is mounted: the options of a bucket" "$siltfs" bucket push "$mnt" --bucket $address
exits 11 "is mounted" push --bucket $address --endpoint "$endpoint"
"$siltfs" umount "$mnt"

step "refusals change nothing"
exits 2 "name the bucket that they are to go to" push
exits 8 "check it with siltfs fsck" verify "$store"
exits 10 "there is no bucket" push --bucket s3://missing/a --endpoint "$endpoint"
[[ ! -e $store/bucket ]] || fail "a bucket file is left"
check_files

step "a push that is killed at several requests, and a mount between them"
killed_at 6 "$siltfs" bucket push "$store" --bucket $address --endpoint "$endpoint" || fail "the push ended: $(cat "$work/out")"
check_files
exits 2 "go on with siltfs bucket push without --bucket" push --bucket s3://bucket/other --endpoint "$endpoint"
signal=TERM killed_at 20 "$siltfs" bucket push "$store" || fail "the push ended: $(cat "$work/out")"
grep -q "the next siltfs bucket push goes on with the rest.*S1333" "$work/out" || fail "$(cat "$work/out")"
for n in 0 14 22 40; do
  killed_at "$n" "$siltfs" bucket push "$store" || true
  check_files
done
push --json >"$work/json"
jq -e '.bucket == "s3://bucket/a" and .segments >= 5' "$work/json" >/dev/null || fail "$(cat "$work/json")"
# Open segments stay local.
(($(find "$store/segments" -name '*.seg' | wc -l) <= 2)) || fail "local segments are left: $(find "$store/segments" -name '*.seg')"
check_files
push --json >"$work/json"
jq -e '.converted == false and .uploaded_segments == 0' "$work/json" >/dev/null || fail "$(cat "$work/json")"

step "without the local cache"
rm -f "$store"/bucket.cache/files/*.obj
check_files
"$siltfs" fsck -n --data "$store" >"$work/out" || fail "$(cat "$work/out")"
exits 0 "clean" verify --data "$store"
verify --json $address --endpoint "$endpoint" >"$work/json"
jq -e '.clean and .store == null and .checked.segments >= 5' "$work/json" >/dev/null || fail "$(cat "$work/json")"

step "a push of a mounted store"
mount_store
noise 40M 7 >"$mnt/7"
exits 11 "siltfs bucket push" push
"$siltfs" bucket push "$mnt" --json >"$work/json"
[[ $(bucket "$mnt" waiting_segments) == 0 && $(bucket "$mnt" commits_behind) == 0 ]] || fail "the bucket is behind"
sums=$(cd "$mnt" && sha256sum -- [1-9]* .snapshots/first/[1-9]*)
exits 0 "clean" verify "$mnt"
exits 11 "is mounted" pull
"$siltfs" umount "$mnt"

step "prefixes of other stores"
exits 1 "choose a prefix that is not below that of another store" "$siltfs" mkfs "$disk/inner" --bucket $address/b --endpoint "$endpoint"
exits 1 "belongs to the store\|has objects" "$siltfs" mkfs "$disk/outer" --bucket s3://bucket --endpoint "$endpoint"
[[ ! -e $disk/inner && ! -e $disk/outer ]] || fail "mkfs has left a store"

step "verify finds what was changed"
objects segments/ >"$work/keys"
mapfile -t keys <"$work/keys"
found() { # CODE KEY
  local code=0
  for place in "$store" $address; do
    code=0
    verify "$place" --endpoint "$endpoint" --json >"$work/json" || code=$?
    ((code == 4)) || fail "$code: $(cat "$work/json")"
    jq -e --arg code "$1" --arg key "$2" '.clean == false and any(.findings[]; .code == $code and .key == $key)' \
      "$work/json" >/dev/null || fail "no $1 of $2: $(cat "$work/json")"
  done
}
control '{"put": "a/notes.txt", "text": "x"}'
found foreign-object notes.txt
control '{"remove": "a/notes.txt"}'
control "{\"exchange\": [\"${keys[0]}\", \"${keys[1]}\"]}"
verify $address --endpoint "$endpoint" --json >"$work/json" && fail "exchanged objects are not found"
jq -e '.finding_count == 2 and all(.findings[]; .code == "wrong-size" or .code == "damaged-object")' "$work/json" >/dev/null || fail "$(cat "$work/json")"
control "{\"exchange\": [\"${keys[0]}\", \"${keys[1]}\"]}"
exits 0 clean verify --data "$store"
control "{\"corrupt\": \"${keys[0]}\"}"
exits 0 clean verify "$store"
exits 4 "damaged-object: ${keys[0]#a/}" verify --data "$store"
exits 4 "damaged-object: ${keys[0]#a/}" verify --data $address --endpoint "$endpoint"
rm -f "$store"/bucket.cache/files/*.obj # whose blocks are not downloaded
exits 13 "do not match" pull
control "{\"corrupt\": \"${keys[0]}\"}"

step "a pull that is killed at several requests, and a mount between them"
for n in 0 9 13; do
  rm -f "$store"/bucket.cache/files/*.obj
  killed_at "$n" "$siltfs" bucket pull "$store" || true
  check_files
done
pull --json >"$work/json"
jq -e '.downloaded_segments <= .segments' "$work/json" >/dev/null || fail "$(cat "$work/json")"
[[ ! -e $store/bucket && ! -e $store/bucket.cache && ! -e $store/bucket.pull ]] || fail "files of the bucket are left: $(ls "$store")"
exits 0 "its segments are in its directory" pull

step "the bucket is still a copy of the store"
"$siltfs" mount $address "$mnt" --cache "$restored" --endpoint "$endpoint" --take-over -o "log=$work/log"
[[ $(cd "$mnt" && sha256sum -- [1-9]* .snapshots/first/[1-9]*) == "$sums" ]] || fail "other bytes in the bucket"
"$siltfs" umount "$mnt"
exits 1 "that this copy of the store does not have" push --bucket $address --endpoint "$endpoint"
# The refused push has begun a move, which this gives up.
pull >/dev/null

step "objects that are deleted and cut off are found"
objects segments/ >"$work/keys"
mapfile -t keys <"$work/keys"
control "{\"cut\": \"${keys[1]}\", \"size\": 100000}"
exits 4 "wrong-size: ${keys[1]#a/}" verify $address --endpoint "$endpoint"
control "{\"remove\": \"${keys[1]}\"}"
exits 4 "missing-object" verify $address --endpoint "$endpoint"
exits 4 "missing-object" verify "$restored"
exits 13 "cannot leave its bucket" "$siltfs" bucket pull "$restored"

step "without the bucket"
kill "$service_PID"
wait "$service_PID" 2>/dev/null || true
check_files
"$siltfs" fsck -n --data "$store" >"$work/out" || fail "$(cat "$work/out")"
