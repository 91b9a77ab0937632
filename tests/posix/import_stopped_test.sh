#!/bin/bash
# A client that is stopped in the middle of an import holds up no other work: imports, programs,
# garbage collection and the unmount go on. Its unfinished file is not visible.
#
#   import_stopped_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

# A limit for calls that must not wait for the client. It only prevents that a failed test hangs.
soon() { timeout 100 "$@" || fail "$1 $2 ends with $?, or waits for the stopped client"; }
# What the client has read so far; as much as possible if it has ended.
read_bytes() { awk '/^rchar/ {print $2}' "/proc/$client/io" 2>/dev/null || echo 999999999999; }
# Whether all threads of the client are stopped, or the client has ended.
stopped() {
  local state
  for state in /proc/"$client"/task/*/stat; do [[ $(awk '{print $3}' "$state") == [TZ] ]] || return 1; done
}
# Starts an import of large files into $mnt/DIR, and stops the client when it has read a part of
# them. `client` is its process.
stop_in_the_middle() { # DIR
  for attempt in {1..50}; do
    "$siltfs" import "$src/large" "$mnt/$1" >"$work/out-of-client" 2>"$work/err-of-client" &
    client=$!
    until (($(read_bytes) > 5000000)); do :; done
    kill -STOP $client
    until stopped; do :; done
    # With less than one file read, no file is complete.
    if (($(read_bytes) < large_bytes)); then
      [[ -z $(find "$mnt/$1" -type f) ]] || fail "visible: $(find "$mnt/$1" -type f)"
      return
    fi
    echo "the import was too fast, attempt $attempt"
    kill -KILL $client
    wait $client || true
    rm -rf "${mnt:?}/$1/large"
  done
  fail "the import was never stopped in the first large file"
}

make_and_mount
large_bytes=$((64 * 1048576))
mkdir -p "$src/large" "$src/small"
for i in 1 2; do noise $large_bytes "large $i" >"$src/large/file-$i"; done
noise 600K small | split --bytes 3000 - "$src/small/file-"

step "other imports and programs go on, and so does the garbage collection"
noise 4M removed >"$mnt/removed"
stop_in_the_middle one
soon "$siltfs" import "$src/small" "$mnt/one" >/dev/null # into the same directory
same_trees "$src/small" "$mnt/one/"
soon cp -a "$src/small" "$mnt/one/copied"
soon mv "$mnt/one/copied" "$mnt/one/moved"
same_trees "$src/small/" "$mnt/one/moved/"
soon rm -r "$mnt/one/moved" "$mnt/removed"
soon "$siltfs" sync "$mnt"
soon "$siltfs" gc "$mnt" >/dev/null
soon "$siltfs" settle "$mnt" >/dev/null
soon "$siltfs" export "$mnt/one/small" "$work/exported" >/dev/null
same_trees "$src/small/" "$work/exported/"
[[ -z $(find "$mnt/one/large" -type f) ]] || fail "an unfinished file is visible"

step "the client continues"
kill -CONT $client
wait $client || fail "the continued import ends with $?: $(cat "$work/err-of-client")"
same_trees "$src/large" "$src/small" "$mnt/one/"

step "an unmount does not wait for a stopped client"
stop_in_the_middle two
soon "$siltfs" umount "$mnt"
! mounted || fail "still mounted"
"$siltfs" fsck -n --data "$store" >"$work/fsck" 2>&1 || fail "fsck: $(cat "$work/fsck")"
stopped && kill -0 $client || fail "the client is not stopped any more, so nothing was tested"
kill -CONT $client
code=0
wait $client || code=$?
((code == 1)) || fail "the client ends with $code"
[[ $(cat "$work/err-of-client") == "siltfs: $mnt: the store is being closed; try again when it is mounted again [S0319]" ]] ||
  fail "the client says: $(cat "$work/err-of-client")"

step "after the unmount, nothing is left of the unfinished files, and the next run completes"
mount_it
[[ -z $(find "$mnt/two" -type f) ]] || fail "visible: $(find "$mnt/two" -type f)"
soon "$siltfs" import "$src/large" "$mnt/two" >/dev/null
same_trees "$src/large" "$mnt/two/"
unmount_and_check
