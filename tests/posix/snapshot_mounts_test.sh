#!/bin/bash
# Mounts of snapshots beside the mount of the live files: the daemon of the store serves them all.
#
#   snapshot_mounts_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/command_checks.sh
source "$(dirname "$0")/command_checks.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

one=$work/one
two=$work/two
three=$work/three
mkdir "$one" "$two" "$three"

is_mounted() { grep -q " $1 fuse.siltfs " /proc/self/mounts; }
# Fails unless mounting the snapshot ends with CODE. The error is in $work/err.
mount_snapshot() { # CODE NAME MOUNTPOINT [OPTION]
  local code=0
  timeout 120 "$siltfs" mount "$store" "$3" -o "allow_other,snapshot=$2${4:+,$4}" 2>"$work/err" || code=$?
  ((code == $1)) || fail "mounting $2 ends with $code: $(cat "$work/err")"
  if (($1 == 0)); then is_mounted "$3" || fail "$3 is not in the mount table"; fi
  if (($1 != 0)); then ! is_mounted "$3" || fail "$3 is mounted after an error"; fi
}
umount_store() { timeout 120 "$siltfs" umount "$1" 2>"$work/err" || fail "umount $1: $(cat "$work/err")"; }
daemon_of() { "$siltfs" stat --json "$1" | jq -e .pid; }
# Processes that have ended count until they are reaped.
one_daemon() { await is_only_daemon; }
is_only_daemon() { [[ $(cat /proc/[0-9]*/comm 2>/dev/null | grep -cx siltfs) == 1 ]]; }
# What mounts use of a daemon: threads, connections to the kernel, and events. (Sockets of clients that
# have left, and files of the store, are closed later.)
used() { # PID
  echo "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l) $(find "/proc/$1/fd" -lname /dev/fuse | wc -l) $(find "/proc/$1/fd" -lname '*eventfd*' | wc -l)"
}
# The limit only turns a hang into a failure.
await() { # COMMAND...
  for _ in {1..600}; do
    if "$@"; then return; fi
    sleep 0.1
  done
  fail "never true: $*"
}
# The earlier count may contain a thread of the command before it.
uses() { # PID USED
  local threads connections events threads_before connections_before events_before
  read -r threads connections events <<<"$(used "$1")"
  read -r threads_before connections_before events_before <<<"$2"
  ((threads <= threads_before && connections <= connections_before && events <= events_before))
}
ended() { ! kill -0 "$1" 2>/dev/null || grep -qs "^State:.Z" "/proc/$1/status"; } # PID
# A request during the daemon's end gets another error.
is_lost() { ! ls "$1/tree" 2>"$work/err" && grep -q "Transport endpoint is not connected" "$work/err"; }
is_free() { "$siltfs" fsck -n "$store" >/dev/null 2>&1; }
describe() { # DIRECTORY
  (cd "$1" && find . -printf '%i %m %n %U %G %s %T@ %P\n' | sort && getfattr -hRP -d -m - .)
}

step "two snapshots, each mounted alone"
make_and_mount
make_source
cp -a "$src/." "$mnt/"
"$siltfs" snapshot create "$mnt" s1 >/dev/null
rm -r "$mnt/other"
echo more >"$mnt/tree/added"
"$siltfs" snapshot create "$mnt" s2 >/dev/null
unmount_and_check
mount_snapshot 0 s1 "$one"
describe "$one" >"$work/alone1"
umount_store "$one"
mount_snapshot 0 s2 "$two"
describe "$two" >"$work/alone2"
umount_store "$two"

step "beside the live files they look the same"
mount_it
pid=$(daemon_of "$mnt")
# Threads that start when they are first needed must not count.
"$siltfs" sync "$mnt"
cat "$mnt/tree/deep/large" >/dev/null
mount_snapshot 0 s1 "$one"
describe "$one" >/dev/null
cat "$one/tree/deep/large" >/dev/null
umount_store "$one"
before=$(used "$pid")
mount_snapshot 0 s1 "$one"
mount_snapshot 0 s2 "$two"
mount_snapshot 0 s1 "$three"
describe "$one" | cmp - "$work/alone1"
describe "$two" | cmp - "$work/alone2"
describe "$three" | cmp - "$work/alone1"
same_trees "$src/" "$one/"
[[ -e $two/tree/added && ! -e $two/other && ! -e $two/.snapshots ]] || fail "s2 is wrong"
one_daemon
! touch "$one/x" 2>/dev/null || fail "a mounted snapshot can be changed"
mount -i -o remount,rw "$one"
! touch "$one/x" 2>/dev/null || fail "a mounted snapshot can be changed after a remount"
! python3 -c "import os; os.open('$one/tree/deep/large', os.O_RDWR)" 2>/dev/null || fail "a file of it can be opened for writing"

step "changes of the live files do not show in them"
noise 3M new >"$mnt/tree/deep/large"
rm -r "$mnt/tree/deep"
"$siltfs" gc "$mnt" >/dev/null
echo 3 >/proc/sys/vm/drop_caches
same_trees "$src/" "$one/"
same_trees "$src/" "$three/"

step "commands on a mounted snapshot"
run_json 0 stat "$one"
holds ".pid == $pid and .mountpoint == \"$mnt\""
run_json 0 snapshot list "$two"
holds '[.snapshots[] | [.name, .mounted]] == [["s1", true], ["s2", true]]'
exec 3>"$mnt/unsynced"
noise 300K unsynced >&3
run_json 0 snapshot create "$two" through-two
cmp <(noise 300K unsynced) "$mnt/.snapshots/through-two/unsynced"
exec 3>&-
run_json 0 sync "$one"
run_json 0 export "$one" "$work/exported"
same_trees "$src/" "$work/exported/"
run_json 0 export "$two/tree" "$work/exported-two"
[[ -e $work/exported-two/added ]] || fail "the export shows another snapshot"
# The numbers of inodes in a snapshot are those of other files in the live file system.
mkdir "$work/source"
echo imported >"$work/source/imported"
run_json 1 import "$work/source/" "$one/tree"
says "a snapshot cannot be changed"
run_json 1 clone "$one/tree" "$one/clone"
says "a snapshot cannot be changed"
[[ -z $(find "$mnt" -name imported -o -name clone) ]] || fail "the live files were changed"

step "a mounted snapshot cannot be deleted"
run_json 1 snapshot delete "$mnt" through-two s1
says 'the snapshot "s1" is mounted'
[[ -e $mnt/.snapshots/through-two ]] || fail "half of the work was done"
run_json 0 snapshot rename "$mnt" s1 renamed
run_json 0 snapshot prune "$mnt" --keep-last 1
holds '[.kept[] | [.name, .reasons]] == [["renamed", ["mounted"]], ["s2", ["mounted"]], ["through-two", ["last"]]]'
same_trees "$src/" "$one/"
run_json 0 snapshot rename "$mnt" renamed s1

step "each unmount frees everything"
umount_store "$one"
said_nothing
run_json 1 snapshot delete "$mnt" s1
says 'the snapshot "s1" is mounted'
fusermount3 -u "$three"
umount -i "$two"
await uses "$pid" "$before"
run_json 0 snapshot create "$mnt" short
mount_snapshot 0 short "$one"
umount_store "$one"
run_json 0 snapshot delete "$mnt" short through-two

step "a busy snapshot is not unmounted"
mount_snapshot 0 s1 "$one"
exec 4<"$one/tree/deep/large"
! "$siltfs" umount "$one" 2>"$work/err" || fail "it is unmounted while a file is open"
is_mounted "$one" || fail "it is not mounted any more"
cmp "$src/tree/deep/large" /dev/fd/4
exec 4<&-

step "errors"
mount_snapshot 1 missing "$two"
says "no snapshot named"
mount_snapshot 2 $'\xff' "$two"
says "must be UTF-8"
mount_snapshot 1 s1 "$one/tree"/nothing
umount_store "$one"

step "mount(8) calls mount.siltfs"
ln -s "$siltfs" "$work/mount.siltfs"
"$work/mount.siltfs" "$store" "$one" -o rw,noauto,snapshot=s1 2>"$work/err" || fail "$(cat "$work/err")"
same_trees "$src/" "$one/"
grep -q " $one fuse.siltfs ro," /proc/self/mounts || fail "it is not read-only: $(cat /proc/self/mounts)"
"$work/mount.siltfs" "$store" "$two" -o ro,snapshot=s2,noxattr,max_read=65536,index_memory=1G 2>"$work/err"
says "without effect.*: index_memory"
cat "$two/tree/added" >/dev/null
[[ -z $(getfattr -R -d -m - "$two" 2>/dev/null) ]] || fail "noxattr has no effect"
code=0
"$work/mount.siltfs" "$store" "$three" -o snapshot=missing 2>"$work/err" || code=$?
((code == 32)) || fail "mount.siltfs ends with $code"
umount_store "$two"

step "in the foreground"
timeout 120 "$siltfs" mount -f "$store" "$two" -o snapshot=s2 2>"$work/err" &
foreground=$!
await is_mounted "$two"
cat "$two/tree/added" >/dev/null
umount_store "$two"
wait $foreground || fail "it ends with $?: $(cat "$work/err")"
"$siltfs" mount -f "$store" "$two" -o snapshot=s2 2>"$work/err" &
foreground=$!
await is_mounted "$two"
kill -TERM $foreground
wait $foreground || fail "it ends with $?: $(cat "$work/err")"
! is_mounted "$two" || fail "a signal does not unmount it"

step "the live files are unmounted first"
mount_snapshot 0 s2 "$two"
exec 4<"$one/tree/deep/large"
noise 5M last >"$mnt/last"
umount_store "$mnt"
says "everything is durable; process $pid keeps the store open"
says "$one, $two"
! ended "$pid" || fail "the daemon has ended"
same_trees "$src/" "$one/"
run_json 0 stat "$two"
holds ".pid == $pid and .mountpoint == \"$one\" and .transport == null"
! "$siltfs" mkfs "$store" 2>"$work/err" || fail "mkfs makes a store in place of one that is in use"
code=0
"$siltfs" mount "$store" "$mnt" 2>"$work/err" || code=$?
((code == 11)) || fail "a second writer ends with $code: $(cat "$work/err")"
says "is mounted on $one by process $pid"
mount_snapshot 0 s2 "$three"
umount_store "$two"
umount_store "$three"
cmp "$src/tree/deep/large" /dev/fd/4
exec 4<&-
umount_store "$one"
ended "$pid" || fail "umount returns before the daemon has ended"
is_free || fail "the store is not free or damaged"
mount_it
cmp <(noise 5M last) "$mnt/last"

step "what was written is durable even if the daemon is then killed"
pid=$(daemon_of "$mnt")
mount_snapshot 0 s1 "$one"
noise 5M durable >"$mnt/durable"
umount_store "$mnt"
kill -KILL "$pid"
await ended "$pid"
await is_lost "$one"
umount_store "$one"
mount_it
cmp <(noise 5M durable) "$mnt/durable"

step "a killed daemon"
pid=$(daemon_of "$mnt")
mount_snapshot 0 s1 "$one"
mount_snapshot 0 s2 "$two"
kill -KILL "$pid"
await ended "$pid"
for place in "$mnt" "$one" "$two"; do
  await is_lost "$place"
  umount_store "$place"
done

step "two snapshots without the live files"
mount_snapshot 0 s1 "$one"
pid=$(daemon_of "$one")
mount_snapshot 0 s2 "$two"
mount_snapshot 0 s1 "$three"
[[ $(daemon_of "$two") == "$pid" ]] || fail "there are several daemons"
umount_store "$one"
describe "$two" | cmp - "$work/alone2"
same_trees "$src/" "$three/"
umount_store "$two"
umount_store "$three"
ended "$pid" || fail "umount returns before the daemon has ended"

step "mounts that begin at the same time"
mounting=()
for n in 1 2 3; do
  mkdir -p "$work/at-once-$n"
  mount_snapshot 0 s1 "$work/at-once-$n" &
  mounting+=($!)
done
for n in "${mounting[@]}"; do wait "$n" || fail "not all are mounted"; done
one_daemon
for n in 1 2 3; do umount_store "$work/at-once-$n"; done
is_free || fail "the store is not free or damaged"

step "a signal ends all mounts"
mount_it
pid=$(daemon_of "$mnt")
mount_snapshot 0 s1 "$one"
mount_snapshot 0 s2 "$two"
exec 4<"$two/tree/added"
kill -TERM "$pid"
await ended "$pid"
! mounted && ! is_mounted "$one" && ! is_mounted "$two" || fail "mounted: $(cat /proc/self/mounts)"
! cat <&4 >/dev/null 2>&1 || fail "an open file can be read without a daemon"
exec 4<&-
is_free || fail "the store is not free or damaged"
mount_snapshot 0 s1 "$one"
pid=$(daemon_of "$one")
mount_snapshot 0 s2 "$two"
umount_store "$one"
kill -TERM "$pid"
await ended "$pid"
! is_mounted "$two" || fail "a signal does not end the last mount"

step "a store that another program uses"
exec 5<"$store/lock"
flock -x 5
mount_snapshot 11 s1 "$one"
says "is in use by "
exec 5<&-

step "a daemon of an earlier version"
python3 - "$store/control" <<'PYTHON' &
import json, os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
while True:
    client = listener.accept()[0]
    command = json.loads(client.makefile().readline())["command"]
    answer = {"ok": True, "result": {"pid": os.getpid(), "mountpoint": "/old", "state": "mounted"}}
    if command != "identity":
        answer = {"ok": False, "code": "invalid argument", "error": "there is no such command"}
    client.sendall(json.dumps(answer).encode() + b"\n")
    client.close()
PYTHON
old=$!
await test -S "$store/control"
mount_snapshot 11 s1 "$one"
says "cannot serve a second mount; use /old/.snapshots/s1"
kill -KILL $old
wait $old 2>/dev/null || true
rm "$store/control"

step "there is a limit"
mount_it
pid=$(daemon_of "$mnt")
before=$(used "$pid")
for n in {1..16}; do
  mkdir "$work/many-$n"
  mount_snapshot 0 s1 "$work/many-$n"
done
mount_snapshot 11 s1 "$one"
says "16 mounts of snapshots already"
for n in {1..16}; do umount_store "$work/many-$n"; done
await uses "$pid" "$before"

step "clients that send something else"
# Each attempt is refused, and the daemon keeps nothing of it.
cat >"$work/hostile.py" <<'PYTHON'
import json, os, socket, struct, sys
path, attempt = sys.argv[1:]

def begin():
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)
    stream.sendall(b'{"command":"attach"}\n')
    lines = stream.makefile()
    assert json.loads(lines.readline())["ok"]
    return stream, lines

def ask(wanted):
    stream, lines = begin()
    stream.sendall(json.dumps(wanted).encode() + b"\n")
    return stream, lines

wanted = {"snapshot": "s1", "mountpoint": "/nowhere", "xattrs": True}
def hand(descriptors, message=struct.pack("<Q", 0)):
    stream, lines = ask(wanted)
    assert json.loads(lines.readline())["ok"]
    if descriptors:
        socket.send_fds(stream, [message], descriptors)
    else:
        stream.sendall(message)
    return json.loads(lines.readline())

if attempt == "leaves":
    begin()[0].close()
    ask(wanted)[0].close()
    stream, lines = ask(wanted)
    assert json.loads(lines.readline())["ok"]
    stream.close()
    sys.exit()
elif attempt == "garbage":
    stream, lines = begin()
    stream.sendall(os.urandom(3000).replace(b"\n", b" ") + b"\n")
    answer = json.loads(lines.readline())
elif attempt == "long":
    stream, lines = begin()
    stream.sendall(b"x" * 100000)
    answer = json.loads(lines.readline())
elif attempt == "no descriptor":
    answer = hand([])
elif attempt == "two descriptors":
    device = os.open("/dev/fuse", os.O_RDWR)
    answer = hand([device, device])
elif attempt == "another file":
    answer = hand([os.open("/dev/null", os.O_RDWR)])
elif attempt == "a pipe":
    answer = hand([os.pipe()[0]])
elif attempt == "a path":
    answer = hand([os.open("/dev/fuse", os.O_PATH)])
elif attempt == "reading only":
    answer = hand([os.open("/dev/fuse", os.O_RDONLY)])
elif attempt == "no mount":
    answer = hand([os.open("/dev/fuse", os.O_RDWR)])
elif attempt == "no device number":
    answer = hand([os.open("/dev/fuse", os.O_RDWR)], b"\xff" * 8)
assert not answer["ok"], answer
print(answer["error"])
PYTHON
for attempt in leaves garbage long "no descriptor" "two descriptors" "another file" "a pipe" "a path" \
  "reading only" "no mount" "no device number"; do
  timeout 60 python3 "$work/hostile.py" "$store/control" "$attempt" >"$work/out" 2>&1 || fail "$attempt: $(cat "$work/out")"
done
await uses "$pid" "$before"
run_json 0 snapshot create "$mnt" unheld
run_json 0 snapshot delete "$mnt" unheld s2
mount_snapshot 0 s1 "$one"
same_trees "$src/" "$one/"
umount_store "$one"

step "other users"
noise 3M readable >"$work/readable"
as_other_user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
mkdir "$work/devices"
mount -t tmpfs -o dev siltfs-test "$work/devices"
mknod --mode 666 "$work/devices/fuse" c 10 229
chmod 666 "$work/devices/fuse"
mount --bind "$work/devices/fuse" /dev/fuse
mkdir "$work/other-user"
chown 65534:65534 "$work/other-user"
! as_other_user "$siltfs" mount "$store" "$work/other-user" -o snapshot=s1 2>"$work/err" || fail "another user is served"
unmount_and_check
as_other_user mkdir "$work/other-user/store" "$work/other-user/mnt" "$work/other-user/one"
store=$work/other-user/store
as_other_user "$siltfs" mkfs "$store"
as_other_user "$siltfs" mount "$store" "$work/other-user/mnt"
as_other_user cp "$work/readable" "$work/other-user/mnt/large"
as_other_user "$siltfs" snapshot create "$work/other-user/mnt" s1 >/dev/null
as_other_user "$siltfs" mount "$store" "$work/other-user/one" -o snapshot=s1
as_other_user cmp "$work/readable" "$work/other-user/one/large"
"$siltfs" mount "$store" "$one" -o snapshot=s1,suid,dev
cmp "$work/readable" "$one/large"
grep -q " $one fuse.siltfs ro,nosuid,nodev" /proc/self/mounts || fail "a user's daemon may give rights: $(cat /proc/self/mounts)"
umount_store "$one"
as_other_user "$siltfs" umount "$work/other-user/mnt" 2>"$work/err"
says "everything is durable"
as_other_user "$siltfs" umount "$work/other-user/one"
as_other_user "$siltfs" fsck -n "$store" >/dev/null
umount /dev/fuse "$work/devices"
