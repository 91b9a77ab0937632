#!/bin/bash
# Ends mounts in every way while programs use them: the daemon is killed, stopped and killed, or
# asked to end, and the file system is unmounted or its connection aborted. Every program must end.
# After a regular end the store is clean, and after any other end fsck finds no damage. Each
# transport of requests is tested that this kernel offers.
#
#   endings_test.sh SILTFS [ROUNDS]
set -euo pipefail

siltfs=$1
rounds=${2:-2}
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

transports=(off)
if [[ $(cat /sys/module/fuse/parameters/enable_uring 2>/dev/null) == Y ]]; then transports+=(on); fi

# Uses the mount until it fails: small files, large files, listings, attributes and removals.
use() { # NUMBER
  local n=$1 i=0 directory=$mnt/$1
  mkdir -p "$directory" || return 0
  while true; do
    i=$((i + 1))
    echo "$n $i" >"$directory/small-$((i % 50))" || return 0
    head -c $((i % 7 * 100000)) /dev/zero >"$directory/large" || return 0
    cat "$directory"/small-* >/dev/null || return 0
    chmod 600 "$directory/small-$((i % 50))" || return 0
    ls -l "$directory" >/dev/null || return 0
    if ((i % 20 == 0)); then sync "$directory/large" || return 0; fi
    rm -f "$directory/large" || return 0
  done
}
programs=()
start_programs() {
  local n
  programs=()
  for n in 1 2 3 4 5; do
    (use "$n") 2>/dev/null &
    programs+=($!)
  done
}
# The limit only turns a hang into a failure.
await_programs() {
  local pid
  for pid in "${programs[@]}"; do
    for _ in {1..600}; do
      kill -0 "$pid" 2>/dev/null || continue 2
      sleep 0.1
    done
    fail "program $pid hangs in $(cat "/proc/$pid/wchan" 2>/dev/null): $(cat "/proc/$pid/stack" 2>/dev/null)"
  done
  wait "${programs[@]}" 2>/dev/null || true
}
stop_programs() {
  kill -KILL "${programs[@]}" 2>/dev/null || true
  await_programs
}
daemon() { "$siltfs" stat --json "$mnt" | jq -e .pid; }
# Waits until the process is gone, a zombie included.
await_end() { # PID
  for _ in {1..600}; do
    if ! kill -0 "$1" 2>/dev/null || grep -qs "^State:.Z" "/proc/$1/status"; then return; fi
    sleep 0.1
  done
  fail "the daemon hangs: $(cat /proc/"$1"/task/*/wchan 2>/dev/null)"
}
detach() { while mounted; do umount --lazy "$mnt" 2>/dev/null || break; done; }

killed() { kill -KILL "$1"; }
stopped_and_killed() {
  kill -STOP "$1"
  sleep 0.3
  kill -KILL "$1"
}
asked_to_end() { kill -TERM "$1"; }
forced() { umount --force "$mnt" 2>/dev/null || true; } # the programs keep it busy
detached() { umount --lazy "$mnt"; }
aborted() {
  local device
  device=$(awk -v m="$mnt" '$5 == m {split($3, d, ":"); print d[2]}' /proc/self/mountinfo)
  [[ -e /sys/fs/fuse/connections/$device/abort ]] || mount -t fusectl none /sys/fs/fuse/connections
  echo 1 >"/sys/fs/fuse/connections/$device/abort"
}

"$siltfs" mkfs "$store"
for ((round = 1; round <= rounds; ++round)); do
  for transport in "${transports[@]}"; do
    for ending in killed stopped_and_killed asked_to_end forced detached aborted; do
      step "round $round, io_uring=$transport: $ending"
      mount_it "io_uring=$transport"
      pid=$(daemon)
      start_programs
      sleep "0.$((RANDOM % 8 + 1))"
      "$ending" "$pid"
      # A detached file system works as long as programs use it.
      if [[ $ending == detached ]]; then stop_programs; fi
      await_programs
      await_end "$pid"
      detach
      code=0
      "$siltfs" fsck -p --data "$store" >"$work/fsck" 2>&1 || code=$?
      ((code <= 1)) || fail "fsck ends with $code: $(cat "$work/fsck")"
    done
  done
done
echo "all well"
