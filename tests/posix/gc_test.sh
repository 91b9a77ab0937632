#!/bin/bash
# Tests garbage collection by the real program: on a mount, in the daemon's background, and on a
# store that is not mounted.
#
#   gc_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

figure() { "$siltfs" stat --json "$store" | jq -e ".$1"; }
holds() { [[ $(jq -n "$1") == true ]] || fail "not so: $1"; }
compare() { for i in "$@"; do cmp "$work/file-$i" "$mnt/file-$i" || fail "file-$i is not as it was written"; done; }

# Waits until background gc has brought stored_bytes below a bound. Later copying may increase the
# figure again, so it is read once per attempt.
stored_less_than() { # BYTES
  local stored=none i
  for ((i = 0; i < 600; ++i)); do
    stored=$(figure stored_bytes)
    ((stored < $1)) && return
    sleep 0.2
  done
  fail "stored_bytes is $stored, not below $1"
}

step "four files, two of them removed"
"$siltfs" mkfs --compression zstd:3 "$store"
mount_it
for i in 1 2 3 4; do
  noise 40M "seed $i" >"$work/file-$i"
  cp "$work/file-$i" "$mnt/"
done
sync "$mnt"/file-*
before=$(figure stored_bytes)
segments() { find "$store/segments" -name '*.seg' | sort | cksum; }
names=$(segments)
rm "$mnt/file-1" "$mnt/file-3"

step "a dry run reports the reclaimable space, and changes nothing"
"$siltfs" gc --dry-run --json "$mnt" >"$work/estimate"
holds "$(jq .dry_run "$work/estimate")"
holds "$(jq .bytes_freed "$work/estimate") > 40000000"
[[ $(segments) == "$names" ]] || fail "the segments have changed"
# stored_bytes may differ from its value before the files were removed. Recompression decreases it.
# Folding of the remaining files increases it, because they get recipe nodes.
holds "$(figure stored_bytes) <= $before + 2000000"
holds "$(figure dead_bytes) > 40000000"

step "gc runs on the mount during reads, writes and stat"
"$siltfs" gc --json "$mnt" >"$work/collected" &
collecting=$!
compare 2 4
cp "$work/file-1" "$mnt/"
"$siltfs" stat "$mnt" >/dev/null
wait $collecting
holds "$(jq .bytes_freed "$work/collected") > 20000000"
compare 1 2 4
code=0
"$siltfs" gc "$store" 2>"$work/err" || code=$?
[[ $code == 11 ]] || fail "the directory of a mounted store: $code"
[[ $(wc -l <"$work/err") == 1 ]] || fail "not one sentence: $(cat "$work/err")"

step "an unmount during gc"
rm "$mnt/file-4"
"$siltfs" gc "$mnt" >/dev/null 2>"$work/err" &
client=$!
compare 1 2
unmount_and_check
wait $client || [[ $(wc -l <"$work/err") == 1 ]] || fail "not one sentence: $(cat "$work/err")"

step "gc of an unmounted store"
"$siltfs" gc "$store"
holds "$(figure stored_bytes) < 100000000"
holds "$(figure unique_bytes) < 100000000"
mount_it
compare 1 2
unmount_and_check

step "background gc runs after enough data was overwritten"
mount_it
for i in 5 6 7 8 9; do
  noise 60M "seed $i" >"$work/file-1"
  cp "$work/file-1" "$mnt/file-1"
  sync "$mnt/file-1"
done
stored_less_than 200000000
compare 1 2

step "background gc after a mount frees data deleted before it"
rm "$mnt/file-2"
unmount_and_check
before=$(figure stored_bytes)
mount_it
stored_less_than $((before - 30000000))
compare 1
unmount_and_check
