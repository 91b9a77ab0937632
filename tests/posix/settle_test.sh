#!/bin/bash
# Recompresses with the real program, on a mount and on a store that is not mounted.
#
#   settle_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

figure() { "$siltfs" stat --json "$store" | jq -e ".$1"; }
holds() { [[ $(jq -n "$1") == true ]] || fail "not so: $1"; }
# Prints lines of decimal digits that depend on a seed; they are unique but compressible. Arguments:
# megabytes, seed.
text() { noise 100G "$2" | od -An -v -tu4 -w40 2>/dev/null | head -c "${1}M" || true; }
compare() { for i in 1 2; do cmp "$work/file-$i" "$mnt/file-$i" || fail "file-$i is not as it was written"; done; }

step "write files of some hundred megabytes"
"$siltfs" mkfs --compression zstd:5 "$store"
mount_it
text 160 one >"$work/file-1"
cp "$work/file-1" "$mnt/"
sync "$mnt/file-1"
holds "$(figure awaiting_recompression_bytes) > 60000000"
before=$(figure stored_bytes)

step "settle on the mount, during stat and reads"
"$siltfs" settle --json "$mnt" >"$work/settled" &
settling=$!
cmp "$work/file-1" "$mnt/file-1"
"$siltfs" stat "$mnt" >/dev/null
wait $settling
jq -e . "$work/settled" >/dev/null
# The daemon may recompress in the background, too, but no segment is recompressed twice.
holds "$(jq .segments_left "$work/settled") == 0"
holds "$(figure awaiting_recompression_bytes) < 40000000"
holds "$(figure stored_bytes) < $before"
compare_first() { cmp "$work/file-1" "$mnt/file-1"; }
compare_first

step "a client that goes away, and an unmount during settle"
text 160 two >"$work/file-2"
cp "$work/file-2" "$mnt/"
sync "$mnt/file-2"
"$siltfs" settle "$mnt" >/dev/null 2>&1 &
client=$!
kill -KILL $client
wait $client 2>/dev/null || true
"$siltfs" settle "$mnt" >/dev/null 2>"$work/err" &
client=$!
compare
unmount_and_check
wait $client || [[ $(wc -l <"$work/err") == 1 ]] || fail "not one sentence: $(cat "$work/err")"

step "settle of an unmounted store"
"$siltfs" settle "$store"
holds "$(figure awaiting_recompression_bytes) < 40000000"
mount_it
compare
unmount_and_check
