#!/bin/bash
# A store with each engine of the index: files are written twice, the daemon is killed, garbage is
# collected, the index is rebuilt. The indexes are so small that they are reorganized all the time.
#
#   engines_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

figure() { "$siltfs" stat --json "$store" | jq -e ".$1"; }
holds() { [[ $(jq -n "$1") == true ]] || fail "not so: $1"; }
compare() { for i in "$@"; do cmp "$work/file-$i" "$mnt/file-$i" || fail "file-$i is not as it was written"; done; }
daemon() { "$siltfs" stat --json "$mnt" | jq .pid; }

for i in 1 2 3; do noise 24M "seed $i" >"$work/file-$i"; done

test_engine() { # ENGINE PARAMETER=VALUE...
  local engine=$1 options=()
  for parameter in "${@:2}"; do options+=(--index-option "$parameter"); done
  rm -rf --one-file-system "$store"

  step "$engine: every file is stored once"
  "$siltfs" mkfs --chunk-avg 1K --index-engine "$engine" "${options[@]}" "$store"
  mount_it
  cp "$work"/file-1 "$work"/file-2 "$mnt/"
  sync "$mnt"/file-*
  mkdir "$mnt/again"
  cp "$work"/file-1 "$work"/file-2 "$mnt/again/"
  sync "$mnt"/again/*
  compare 1 2
  holds "$(figure stored_bytes) < 60000000"
  [[ $("$siltfs" index stat --json "$store" | jq -r .engine) == "$engine" ]] || fail "another engine"

  step "$engine: a killed daemon"
  cp "$work/file-3" "$mnt/"
  sync "$mnt/file-3"
  local pid
  pid=$(pgrep -f "siltfs mount $store") || fail "no daemon"
  kill -KILL "$pid"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  umount "$mnt" || umount --lazy "$mnt"
  mount_it
  compare 1 2 3
  cmp "$work/file-2" "$mnt/again/file-2" || fail "again/file-2 is not as it was written"
  unmount_and_check

  step "$engine: garbage collection and a rebuild"
  mount_it
  rm "$mnt/file-1" "$mnt/again/file-1" "$mnt/file-3"
  "$siltfs" gc "$mnt"
  compare 2
  cp "$work/file-3" "$mnt/"
  unmount_and_check
  "$siltfs" index verify "$store"
  "$siltfs" index rebuild "$store"
  mount_it
  compare 2 3
  cp "$work/file-3" "$mnt/again/"
  sync "$mnt/again/file-3"
  holds "$(figure stored_bytes) < 60000000"
  unmount_and_check
}

test_engine buffer_hash partition_bits=1 table_bits=5 incarnations=4
test_engine slice_hash partition_bits=1 table_bits=4 incarnations=16 filter_bits=8 directories=2
test_engine bloom_store partition_bits=1 chain_length=12 buffered_filters=3 prefilter_bits=4
test_engine skimpy_stash partition_bits=1 capacity_bits=10 garbage=4
