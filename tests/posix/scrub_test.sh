#!/bin/bash
# Scrubs with the real program. Damage below a mount is reported, healed and collected. A store that
# is not mounted is scrubbed, too.
#
#   scrub_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

figure() { "$siltfs" stat --json "$store" | jq -e ".$1"; }
holds() { [[ $(jq -n "$1") == true ]] || fail "not so: $1"; }
# Changes a byte in the middle of the store's oldest data segment, which is sealed and full.
damage() {
  local segment=$1 middle byte
  middle=$(($(stat -c %s "$segment") / 2))
  byte=$(od -An -tu1 -j "$middle" -N 1 "$segment")
  printf '%b' "\\x$(printf %02x $(((byte + 1) % 256)))" | dd of="$segment" bs=1 seek="$middle" conv=notrunc status=none
}

step "a store without damage, mounted and unmounted"
"$siltfs" mkfs --compression zstd:3 "$store"
mount_it
noise 60M one >"$work/file-1"
noise 20M two >"$work/file-2"
cp "$work/file-1" "$work/file-2" "$mnt/"
cp "$work/file-1" "$mnt/file-1-too"
sync "$mnt/file-1" "$mnt/file-2" "$mnt/file-1-too"
"$siltfs" scrub --json "$mnt" >"$work/scrubbed" &
scrubbing=$!
cmp "$work/file-2" "$mnt/file-2"
"$siltfs" stat "$mnt" >/dev/null
wait $scrubbing
holds "$(jq .complete "$work/scrubbed")"
holds "$(jq .damaged_chunks "$work/scrubbed") == 0"
holds "$(jq .bytes "$work/scrubbed") > 80000000"
unmount_and_check
"$siltfs" scrub "$store"

step "an unmount ends a scrub, and the next scrub continues it"
mount_it
"$siltfs" scrub --json "$mnt" >"$work/ended" 2>"$work/err" &
scrubbing=$!
"$siltfs" umount "$mnt"
code=0
wait $scrubbing || code=$?
# The scrub was complete (0), or the daemon ended it while closing (130), or the command came too
# late and failed with one sentence.
[[ $code == 0 || $code == 130 || $(wc -l <"$work/err") == 1 ]] || fail "a scrub that was ended: $code"
[[ ! -s $work/ended ]] || jq -e . "$work/ended" >/dev/null
"$siltfs" scrub --json "$store" >"$work/scrubbed"
holds "$(jq .complete "$work/scrubbed")"
holds "$(jq .bytes "$work/scrubbed") > 80000000"

step "an interrupted scrub"
mount_it
"$siltfs" scrub "$mnt" >"$work/ended" &
scrubbing=$!
until [[ ! -e /proc/$scrubbing || $(readlink "/proc/$scrubbing/exe") == "$siltfs" ]]; do :; done
kill -TERM $scrubbing
wait $scrubbing || true
"$siltfs" stat "$mnt" >/dev/null

step "a signal that comes while the store is opened ends a scrub of it"
"$siltfs" umount "$mnt"
code=0
# The signal is pending before the program begins. It stays blocked until the program waits for it.
python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
os.kill(os.getpid(), signal.SIGINT)
os.execv(sys.argv[1], sys.argv[1:])' "$siltfs" scrub "$store" >"$work/out" 2>&1 || code=$?
((code == 130)) || fail "the scrub ends with $code: $(cat "$work/out")"
grep -q interrupted "$work/out" || fail "the scrub says: $(cat "$work/out")"
"$siltfs" scrub "$store"

step "damage is found, and the files are named"
segment=$(find "$store/segments" -name '*.seg' -size +30M | sort | head -1)
damage "$segment"
mount_it
code=0
"$siltfs" scrub --json "$mnt" >"$work/scrubbed" || code=$?
[[ $code == 13 ]] || fail "a scrub that found damage: $code"
holds "$(jq .damaged_blocks "$work/scrubbed") == 1"
holds "$(jq .damaged_files "$work/scrubbed") >= 1"
holds "$(figure damaged_blocks) == 1"
grep -q "$segment" "$work/log" || fail "the log does not name $segment"
grep -qE '/file-[12](-too)? \(inode [0-9]+\): [0-9]+ bytes cannot be read' "$work/log" || fail "the log names no file"

step "only the damaged range returns an error"
errors=0
for file in file-1 file-1-too file-2; do
  cmp "$work/${file%-too}" "$mnt/$file" 2>/dev/null || errors=$((errors + 1))
done
((errors >= 1)) || fail "nothing is damaged"

step "writing the same content again heals all files"
cp "$work/file-1" "$mnt/backup-1"
cp "$work/file-2" "$mnt/backup-2"
sync "$mnt/backup-1" "$mnt/backup-2"
for file in file-1 file-1-too file-2; do cmp "$work/${file%-too}" "$mnt/$file" || fail "$file is not healed"; done
"$siltfs" umount "$mnt"
mount_it
for file in file-1 file-1-too file-2; do cmp "$work/${file%-too}" "$mnt/$file" || fail "$file is not healed"; done

step "gc removes the damaged segment when it has no live chunks"
rm "$mnt"/*file-1* "$mnt/backup-1"
"$siltfs" gc "$mnt"
holds "$(figure damaged_blocks) == 0"
cmp "$work/file-2" "$mnt/file-2"
unmount_and_check
