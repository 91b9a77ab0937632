#!/bin/bash
# Tests durability after `siltfs sync`, after a pause, and after SIGTERM to the daemon of a mount in
# use. The test kills the daemon, and the next mount shows which data survived.
#
#   sync_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/other_user.sh
source "$(dirname "$0")/other_user.sh"

figure() { "$siltfs" stat --json "$mnt" | jq -e ".$1"; }
daemon() { figure pid; }
# until_true CONDITION...: waits until the condition is true. The deadline only ends a test that
# hangs.
until_true() {
  local deadline=$((SECONDS + 60))
  until "$@"; do
    ((SECONDS < deadline)) || fail "never came true: $*"
    read -rt 0.01 <> <(:) || true
  done
}
gone() { ! kill -0 "$1" 2>/dev/null || [[ $(awk '/^State/ {print $2}' "/proc/$1/status" 2>/dev/null || echo Z) == Z ]]; }
kill_daemon() {
  local pid
  pid=$(daemon)
  kill -KILL "$pid"
  until_true gone "$pid"
  umount --lazy "$mnt"
}
# Starts a program that writes file $1 to $mnt/$2 and keeps it open until let_go is called. The data
# stays in the kernel's cache.
hold_open() {
  coproc holder { python3 -c 'import sys; f = open(sys.argv[2], "wb", 0); f.write(open(sys.argv[1], "rb").read()); print("written", flush=True); sys.stdin.read()' "$1" "$2"; }
  read -r _ <&"${holder[0]}"
  holder_pid=$holder_PID
}
let_go() {
  kill "$holder_pid"
  wait "$holder_pid" 2>/dev/null || true
}
head -c 30000000 /dev/urandom >"$work/random"
find /usr/include -maxdepth 1 -type f | head -200 >"$work/list"
mkdir "$work/tree"
xargs -d '\n' cp -t "$work/tree" <"$work/list"

step "siltfs sync makes a tree, an open file and a mapping's data durable"
"$siltfs" mkfs "$store"
mount_it commit=3600
cp -a "$work/tree" "$mnt/"
hold_open "$work/random" "$mnt/open"
python3 - "$mnt/mapped" <<'PYTHON'
import mmap, sys
with open(sys.argv[1], "wb+") as file:
    file.truncate(1 << 20)
    mapping = mmap.mmap(file.fileno(), 1 << 20)
    mapping[5000:5004] = b"here"
PYTHON
"$siltfs" sync "$mnt" >"$work/out"
[[ ! -s $work/out ]] || fail "sync prints: $(cat "$work/out")"
kill_daemon
let_go
mount_it commit=3600
diff -r "$work/tree" "$mnt/tree"
cmp "$work/random" "$mnt/open"
[[ $(dd if="$mnt/mapped" bs=1 skip=5000 count=4 status=none) == here ]] || fail "the mapping's data is lost"

step "siltfs sync prints a document, accepts an idle mount, and refuses a path that is no mount"
[[ $("$siltfs" sync --json "$mnt" | jq -c '[.store, .mountpoint, .durable]') == "[\"$store\",\"$mnt\",true]" ]] || fail "the document"
"$siltfs" sync "$mnt"
code=0
"$siltfs" sync "$work/tree" 2>"$work/err" || code=$?
((code == 10)) || fail "exit code $code for a path that is no mount"
[[ $(wc -l <"$work/err") == 1 ]] || fail "not one sentence: $(cat "$work/err")"

step "a pause makes changes durable long before the commit interval ends"
before=$(figure last_commit)
cp -a "$work/tree" "$mnt/after-a-pause"
sync -f "$mnt"
committed() { (($(figure last_commit) > before)); }
until_true committed
# The last changes may not be part of the commit that has ended. So wait until last_commit has not
# changed for 1.5 seconds.
until_true bash -c 'a=$("$0" stat --json "$1" | jq .last_commit); read -rt 1.5 <> <(:); b=$("$0" stat --json "$1" | jq .last_commit); ((a == b))' "$siltfs" "$mnt"
kill_daemon
mount_it commit=3600
diff -r "$work/tree" "$mnt/after-a-pause"

step "SIGTERM while the mount is in use loses no written data"
hold_open "$work/random" "$mnt/in-use"
pid=$(daemon)
kill -TERM "$pid"
until_true gone "$pid"
let_go
umount --lazy "$mnt" 2>/dev/null || true
mount_it
cmp "$work/random" "$mnt/in-use"
unmount_and_check

step "a SIGTERM that loses data on a full disk is reported as a failure"
mkdir "$work/small"
mount -t tmpfs -o size=80m siltfs-test "$work/small"
large=$disk/store
store=$work/small/store
"$siltfs" mkfs "$store"
code=0
"$siltfs" mount --foreground "$store" "$mnt" -o nogc 2>"$work/foreground" &
daemon=$!
until_true mounted
head -c 150M /dev/urandom >"$work/too-much"
hold_open "$work/too-much" "$mnt/in-use"
kill -TERM "$daemon"
wait "$daemon" || code=$?
let_go
((code == 1)) || fail "the daemon ended with $code: $(cat "$work/foreground")"
grep -q "No space left on device" "$work/foreground" || fail "the daemon says: $(cat "$work/foreground")"
! grep -q "everything is durable" "$work/foreground" || fail "the daemon says that everything is durable"
umount --lazy "$mnt" 2>/dev/null || true
umount --lazy "$work/small"
rm "$work/too-much"
store=$large

step "on a user's own mount sync works for closed files; open files need the kernel's report"
mount -t tmpfs siltfs-test /sys/fs/fuse/connections # hides the fusectl file system
chmod 644 "$work/random"
mnt=$work/own store=$disk/own-store
let_other_user_mount "$store" "$mnt"
as_nobody "$siltfs" mkfs "$store"
own_mount() { as_nobody "$siltfs" mount "$store" "$mnt" -o commit=3600; }
own_mount
as_nobody mkdir "$mnt/tree"
as_nobody cp "$work/random" "$mnt/tree/closed"
as_nobody "$siltfs" sync "$mnt"
# The user's program opens the file, because root may not access the mount.
coproc holder { as_nobody /usr/bin/python3 -c 'import sys; f = open(sys.argv[2], "wb", 0); f.write(open(sys.argv[1], "rb").read()); print("written", flush=True); sys.stdin.read()' "$work/random" "$mnt/tree/open"; }
read -r _ <&"${holder[0]}"
holder_pid=$holder_PID
code=0
as_nobody "$siltfs" sync "$mnt" 2>"$work/err" || code=$?
((code == 1)) || fail "exit code $code without a report of the kernel"
grep -q "fsync or close them" "$work/err" || fail "the message is: $(cat "$work/err")"
umount /sys/fs/fuse/connections
mountpoint -q /sys/fs/fuse/connections || mount -t fusectl fusectl /sys/fs/fuse/connections
as_nobody "$siltfs" sync "$mnt"
pid=$(as_nobody "$siltfs" stat --json "$mnt" | jq .pid)
kill -KILL "$pid"
until_true gone "$pid"
umount --lazy "$mnt"
let_go
own_mount
as_nobody cmp "$work/random" "$mnt/tree/closed"
as_nobody cmp "$work/random" "$mnt/tree/open"
as_nobody "$siltfs" umount "$mnt"
