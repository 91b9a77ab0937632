#!/bin/bash
# The daemon's log: entries of the journal with fields, and a log file that is rotated while the
# store is mounted. The test receives the entries of the journal itself.
#
#   log_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

# Only in the mount namespace of this test. Without these directories, they are made and removed.
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
mkdir /run/systemd/journal
journal=/run/systemd/journal/socket
entries=$work/entries

# Receives entries in the native form, and appends each to the file as one line of JSON.
cat >"$work/journal.py" <<'END'
import json, socket, struct, sys

receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print("listening", flush=True)
while True:
    data = receiver.recv(1 << 20)
    fields = {}
    while data:
        line, data = data.split(b"\n", 1)
        name, equals, value = line.partition(b"=")
        if not equals:
            (size,) = struct.unpack("<Q", data[:8])
            value, data = data[8 : 8 + size], data[8 + size + 1 :]
        fields[name.decode()] = value.decode()
    with open(sys.argv[2], "a") as out:
        print(json.dumps(fields), file=out, flush=True)
END
start_journal() {
  rm -f "$journal"
  : >"$entries"
  coproc receiver { exec python3 "$work/journal.py" "$journal" "$entries"; }
  receiver_process=$receiver_PID
  read -r _ <&"${receiver[0]}"
}
await_entry() { # CONDITION OF JQ
  local i
  for ((i = 0; i < 600; ++i)); do
    ! jq -se "any(.[]; $1)" "$entries" >/dev/null 2>&1 || return 0
    sleep 0.1
  done
  fail "no entry with $1: $(cat "$entries")"
}
damage() { # SEGMENT
  local at byte
  at=$(($(stat -c %s "$1") / 2))
  byte=$(od -An -tu1 -j "$at" -N 1 "$1")
  printf '%b' "\\x$(printf %02x $(((byte + 1) % 256)))" | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}

step "a daemon in the background writes to the journal, with fields"
"$siltfs" mkfs "$store"
start_journal
"$siltfs" mount "$store" "$mnt" -o allow_other
ours=".SILTFS_STORE == \"$store\" and .SILTFS_MOUNTPOINT == \"$mnt\" and .SYSLOG_IDENTIFIER == \"siltfs\""
await_entry "$ours and .PRIORITY == \"6\" and (.MESSAGE | startswith(\"$store: mounted on $mnt (siltfs \"))"
daemon=$("$siltfs" stat --json "$mnt" | jq .pid)
await_entry "$ours and .SYSLOG_PID == \"$daemon\" and .SYSLOG_FACILITY == \"3\""
noise 60M one >"$mnt/one"
"$siltfs" umount "$mnt"
await_entry "$ours and (.MESSAGE | startswith(\"$store: closed, everything is durable\"))"

step "damage has its code, its file and its offset as fields"
segment=$(find "$store/segments" -name '*.seg' -size +30M | sort | head -1)
damage "$segment"
"$siltfs" mount "$store" "$mnt" -o allow_other
! cat "$mnt/one" >/dev/null 2>&1 || fail "damage is read"
place=".SILTFS_CODE == \"corruption\" and .SILTFS_PATH == \"$segment\" and (.SILTFS_OFFSET | tonumber) > 1000000"
await_entry "$ours and .PRIORITY == \"3\" and $place and (.MESSAGE | test(\"inode [0-9]+ cannot be read\"))"
! "$siltfs" scrub "$mnt" >/dev/null || fail "the scrub finds no damage"
await_entry "$ours and $place and (.MESSAGE | test(\"chunks [0-9]+ to [0-9]+ are damaged\"))"
jq -se 'all(.[]; has("SILTFS_OFFSET") == has("SILTFS_PATH"))' "$entries" >/dev/null || fail "$(cat "$entries")"

step "a journal that is started again gets the next entries"
kill "$receiver_process"
wait "$receiver_process" 2>/dev/null || true
start_journal
"$siltfs" umount "$mnt"
await_entry "$ours and (.MESSAGE | startswith(\"$store: closed, everything is durable\"))"

step "a daemon in the foreground writes to the journal only if systemd has connected it"
"$siltfs" mount -f "$store" "$mnt" 2>"$work/stderr" &
daemon=$!
for ((i = 0; i < 600; ++i)); do mounted && break || sleep 0.1; done
"$siltfs" umount "$mnt"
wait "$daemon"
grep -q "everything is durable" "$work/stderr" || fail "standard error has no log: $(cat "$work/stderr")"
: >"$entries"
: >"$work/stream"
JOURNAL_STREAM=$(stat -c %d:%i "$work/stream") "$siltfs" mount -f "$store" "$mnt" 2>"$work/stream" &
daemon=$!
await_entry "$ours and (.MESSAGE | contains(\": mounted on \"))"
"$siltfs" umount "$mnt"
wait "$daemon"
! grep -q "mounted on" "$work/stream" || fail "the log is written twice: $(cat "$work/stream")"

step "a journal that does not receive delays a daemon, but does not stop it"
kill -STOP "$receiver_process"
"$siltfs" mount "$store" "$mnt" -o allow_other
echo text >"$mnt/file"
timeout 120 "$siltfs" umount "$mnt" || fail "the unmount waits for the journal"
kill -KILL "$receiver_process"
wait "$receiver_process" 2>/dev/null || true
rm "$journal"

step "a log file is rotated while the store is mounted, and no line is lost"
mount_it
"$siltfs" snapshot create "$mnt" tuesday >/dev/null
mkdir "$work/old"
rounds=12
for ((i = 1; i <= rounds; ++i)); do
  # Some rotations are between two lines of one mount, some before it.
  if ((i % 3 == 0)); then mv "$work/log" "$work/log.$i-a"; fi
  "$siltfs" mount "$store" "$work/old" -o snapshot=tuesday
  if ((i % 2 == 0)); then
    until [[ -s $work/log ]]; do sleep 0.1; done
    mv "$work/log" "$work/log.$i-b"
  fi
  "$siltfs" umount "$work/old"
done
"$siltfs" umount "$mnt"
lines() { cat "$work"/log* | grep -c -- "$1" || true; }
(($(lines 'snapshot "tuesday" is mounted on') == rounds)) || fail "lines are lost: $(grep -c '' "$work"/log*)"
(($(lines 'snapshot "tuesday" is no longer mounted on') == rounds)) || fail "lines are lost: $(grep -c '' "$work"/log*)"
(($(lines 'closed, everything is durable') == 1)) || fail "the last line is lost"
(($(find "$work" -name 'log.*' | wc -l) == rounds / 3 + rounds / 2)) || fail "$(ls "$work")"
! cat "$work"/log* | grep -vE '^\[[0-9]{4}-.*\] \[siltfs\] ' || fail "a line is not whole"

step "logrotate, with the settings of the package"
if command -v logrotate >/dev/null; then
  rm "$work"/log*
  mkdir "$work/logs"
  sed "s|/var/log/siltfs|$work/logs|" "$(dirname "$0")/../../tools/debian/logrotate" >"$work/rotate.conf"
  "$siltfs" mount "$store" "$mnt" -o "log=$work/logs/store.log"
  chmod 640 "$work/logs/store.log"
  logrotate --force --state "$work/state" "$work/rotate.conf"
  "$siltfs" umount "$mnt"
  grep -q "mounted on" "$work/logs/store.log.1" || fail "$(ls "$work/logs")"
  grep -q "everything is durable" "$work/logs/store.log" || fail "the new log is $(cat "$work/logs/store.log")"
  [[ $(stat -c %a "$work/logs/store.log") == 640 ]] || fail "the new log has other permissions"
else
  echo "SKIPPED, no logrotate"
fi

step "a log that the mount hides"
"$siltfs" mount "$store" "$mnt" -o "log=$mnt/log"
[[ ! -e $mnt/log ]] || fail "the log is in the store"
timeout 60 "$siltfs" snapshot create "$mnt" friday >/dev/null
timeout 60 "$siltfs" umount "$mnt" || fail "the daemon waits for itself"
grep -q "everything is durable" "$mnt/log" || fail "the hidden log is not written"
rm "$mnt/log"

echo "all well"
