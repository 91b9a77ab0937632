#!/bin/bash
# Tests that a mount in the foreground tells the service manager how far it is, as systemd expects of
# a service with Type=notify. The test receives the messages itself.
#
#   service_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

# Receives datagrams, and appends each to the file as one line of JSON with the time of its arrival.
# It also writes whether the file system is mounted at that moment.
cat >"$work/receive.py" <<'END'
import json, socket, sys

address, log, mountpoint = sys.argv[1:]
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind("\0" + address[1:] if address.startswith("@") else address)
print("listening", flush=True)
while True:
    message = receiver.recv(4096).decode()
    with open("/proc/self/mounts") as mounts:
        mounted = any(line.split()[1:3] == [mountpoint, "fuse.siltfs"] for line in mounts)
    with open(log, "a") as out:
        print(json.dumps({"message": message, "mounted": mounted}), file=out, flush=True)
END

messages=$work/messages
listen() { # ADDRESS
  : >"$messages"
  coproc receiver { exec python3 "$work/receive.py" "$1" "$messages" "$mnt"; }
  receiver_process=$receiver_PID
  read -r _ <&"${receiver[0]}"
}
stop_listening() {
  kill "$receiver_process"
  wait "$receiver_process" 2>/dev/null || true
  rm -f "$work/notify"
}
got() { grep -F -- "$1" "$messages"; } # TEXT of the message as JSON
# Waits until a message with this text has come. Fails if the process ends before.
await() { # TEXT PROCESS
  local i
  for ((i = 0; i < 1200; ++i)); do
    ! got "$1" >/dev/null || return 0
    kill -0 "$2" 2>/dev/null || fail "the daemon ended before it sent \"$1\": $(cat "$messages" "$work/stderr")"
    sleep 0.05
  done
  fail "\"$1\" was not sent: $(cat "$messages")"
}
start() { # ADDRESS [OPTION...]
  NOTIFY_SOCKET=$1 "$siltfs" mount --foreground "${@:2}" "$store" "$mnt" 2>"$work/stderr" &
  daemon=$!
}
ends_with() { # CODE
  local code=0
  wait "$daemon" || code=$?
  ((code == $1)) || fail "the daemon ended with $code instead of $1: $(cat "$work/stderr")"
}

"$siltfs" mkfs "$store"

for address in "$work/notify" "@siltfs-service-test-$$"; do
  step "READY is sent when the mount answers, and STOPPING when it has ended ($address)"
  listen "$address"
  start "$address"
  await READY=1 "$daemon"
  [[ $(got READY=1 | jq .mounted) == true ]] || fail "READY was sent before the mount"
  echo text >"$mnt/file"
  [[ $(got READY=1 | jq -r .message) == *"STATUS=$store is mounted on $mnt" ]] || fail "$(got READY=1)"
  ! got STOPPING >/dev/null || fail "STOPPING was sent while mounted"
  [[ $(head -n 1 "$messages" | jq -r .message) == "STATUS=opening $store" ]] || fail "$(head -n 1 "$messages")"
  kill -TERM "$daemon"
  ends_with 0
  ! mounted || fail "still mounted"
  [[ $(got STOPPING=1 | jq .mounted) == false ]] || fail "$(cat "$messages")"
  (($(wc -l <"$messages") == 3)) || fail "not three messages: $(cat "$messages")"
  "$siltfs" fsck -n --data "$store" >/dev/null || fail "fsck"
  stop_listening
done

step "umount(8) stops the service with STOPPING and exit code 0"
listen "$work/notify"
start "$work/notify"
await READY=1 "$daemon"
[[ $(cat "$mnt/file") == text ]] || fail "the file differs"
head -c 5M /dev/urandom >"$work/content"
cp "$work/content" "$mnt/content"
umount -i "$mnt"
ends_with 0
got STOPPING=1 >/dev/null || fail "$(cat "$messages")"
stop_listening

step "a stop while files are open keeps what was written"
listen "$work/notify"
start "$work/notify"
await READY=1 "$daemon"
exec 9>"$mnt/open"
cat "$work/content" >&9
kill -TERM "$daemon"
ends_with 0
exec 9>&- || true
! mounted || fail "still mounted"
stop_listening
mount_it
cmp "$work/content" "$mnt/open" || fail "the open file has lost data"
cmp "$work/content" "$mnt/content" || fail "the file differs"

step "a mount that fails is never ready"
listen "$work/notify"
mkdir "$work/second"
code=0
NOTIFY_SOCKET=$work/notify timeout 60 "$siltfs" mount -f "$store" "$work/second" 2>"$work/stderr" || code=$?
((code == 11)) || fail "exit code $code: $(cat "$work/stderr")"
! got READY >/dev/null || fail "$(cat "$messages")"
stop_listening

step "a mount of a snapshot that another daemon serves is ready, too"
"$siltfs" snapshot create "$mnt" first
listen "$work/notify"
mnt=$work/second start "$work/notify" -o snapshot=first
await READY=1 "$daemon"
cmp "$work/content" "$work/second/content" || fail "the snapshot differs"
umount -i "$work/second"
ends_with 0
stop_listening

step "a daemon in the background tells nothing, because its launcher has ended"
"$siltfs" umount "$mnt"
listen "$work/notify"
NOTIFY_SOCKET=$work/notify mount_it
[[ ! -s $messages ]] || fail "$(cat "$messages")"
"$siltfs" umount "$mnt"
[[ ! -s $messages ]] || fail "$(cat "$messages")"
stop_listening

step "without a receiver the mount works, and a warning says so"
start "$work/nothing"
for ((i = 0; i < 1200; ++i)); do mounted && break || sleep 0.05; done
mounted || fail "not mounted"
cmp "$work/content" "$mnt/content" || fail "the file differs"
"$siltfs" umount "$mnt"
ends_with 0
grep -q "warning: $work/nothing: cannot tell the service manager" "$work/stderr" || fail "$(cat "$work/stderr")"

echo "all well"
