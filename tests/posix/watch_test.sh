#!/bin/bash
# siltfs stat --watch on real mounts: what it shows, and how it ends.
#
#   watch_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

watching=0
# Runs siltfs stat --watch in the background, with its output in $work/out and $work/err.
watch() { # ARGUMENT...
  : >"$work/out"
  env --default-signal=INT "$siltfs" stat --watch 0.2 "$@" >"$work/out" 2>"$work/err" &
  watching=$!
}
lines() { wc -l <"$work/out"; }
await_lines() { # COUNT
  for ((i = 0; i < 600; ++i)); do
    (($(lines) >= $1)) && return
    kill -0 $watching 2>/dev/null || fail "the view has ended: $(cat "$work/out" "$work/err")"
    sleep 0.1
  done
  fail "there are only $(lines) lines"
}
# Waits for the end of the view; its exit code must be CODE.
ends() { # CODE
  local code=0
  wait $watching || code=$?
  ((code == $1)) || fail "the view ends with $code instead of $1: $(cat "$work/err")"
}
says() { grep -qF -- "$1" "$work/err" || fail "\"$1\" is not in: $(cat "$work/err")"; }
# The sum over all documents of a rate times the seconds of its interval, as a whole number.
total() { jq -s "map(.$1 * .seconds) | add | round" "$work/out"; }
await_total() { # KEY LEAST
  for ((i = 0; i < 600; ++i)); do
    (($(total "$1") >= $2)) && return
    sleep 0.1
  done
  fail "$1: only $(total "$1") of $2"
}

make_and_mount

step "each interval is a document, and the documents account for all traffic"
watch --json "$mnt"
await_lines 1
noise 8M one >"$work/content"
cat "$work/content" >"$mnt/one"
cat "$work/content" >"$mnt/two"
"$siltfs" sync "$mnt"
await_total put_bytes_per_s 16777216
(($(total written_bytes_per_s) == 16777216)) || fail "written: $(total written_bytes_per_s)"
# The end of a file may be cut twice.
nearly() { # KEY BYTES
  local bytes
  bytes=$(total "$1")
  ((bytes >= $2 && bytes < $2 + 300000)) || fail "$1: $bytes instead of $2"
}
nearly put_bytes_per_s 16777216
nearly added_bytes_per_s 8388608
"$siltfs" export "$mnt" "$work/exported" >/dev/null
await_total read_bytes_per_s 8388608
"$siltfs" scrub "$mnt" >/dev/null
for ((i = 0; i < 600; ++i)); do
  jq -se 'any(.scrub.bytes_per_s > 0)' "$work/out" >/dev/null && break
  sleep 0.1
done
jq -se 'any(.scrub.bytes_per_s > 0)' "$work/out" >/dev/null || fail "the scrub is not shown"
jq -se 'all(.seconds > 0 and .time > 1700000000 and (.read_only | not))' "$work/out" >/dev/null ||
  fail "a document is wrong"

step "an unmount ends the view"
"$siltfs" umount "$mnt"
ends 0
says "$mnt: was unmounted"
jq -se 'length > 0' "$work/out" >/dev/null || fail "the last document is cut"

step "a table for files, with titles"
mount_it
watch "$mnt/two"
await_lines 4
head -1 "$work/out" | grep -q "^TIME  *READ/s  *WRITE/s" || fail "no titles: $(cat "$work/out")"
grep -qE '^[0-9]{2}:[0-9]{2}:[0-9]{2}  +0 B ' "$work/out" || fail "no line: $(cat "$work/out")"
! grep -q $'\x1b' "$work/out" || fail "escape sequences in a file"

for signal in INT TERM; do
  step "SIG$signal ends the view"
  kill -s $signal $watching
  ends 130
  mounted || fail "the signal has ended the mount"
  watch "$mnt"
  await_lines 2
done
kill $watching
ends 130

step "a reader that leaves ends the view"
code=0
timeout 60 "$siltfs" stat --watch 0.2 "$mnt" 2>"$work/err" | head -2 >"$work/out" || code=${PIPESTATUS[0]}
((code != 124)) || fail "the view has not ended"
(($(lines) == 2)) || fail "not two lines: $(cat "$work/out")"

step "a terminal is redrawn in place"
: >"$work/typed"
TERM=xterm timeout 60 script -qec "stty cols 50; $siltfs stat --watch 0.2 $mnt" "$work/typed" </dev/null >/dev/null 2>&1 &
watching=$!
for ((i = 0; i < 600; ++i)); do
  (($(grep -c $'\x1b\\[[0-9]*F\x1b\\[J' "$work/typed" 2>/dev/null || true) >= 3)) && break
  sleep 0.1
done
(($(grep -c $'\x1b\\[[0-9]*F\x1b\\[J' "$work/typed") >= 3)) || fail "it is not redrawn: $(cat -v "$work/typed")"
grep -q "^Reads  " "$work/typed" || fail "no reads: $(cat -v "$work/typed")"
"$siltfs" umount "$mnt"
wait $watching || true
grep -q "was unmounted" "$work/typed" || fail "no end: $(cat -v "$work/typed")"

step "a daemon that was killed ends the view with a failure"
mount_it
watch "$mnt"
await_lines 2
kill -KILL "$("$siltfs" stat --json "$mnt" | jq .pid)"
ends 1
says "\"siltfs umount $mnt\" removes it"
"$siltfs" umount "$mnt" 2>/dev/null

step "a store that is not mounted has no view"
watch "$store"
ends 1
says "$store: is not mounted; --watch shows what a mounted store does"
mount_it
unmount_and_check
