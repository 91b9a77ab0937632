#!/bin/bash
# Tests what a file server in the kernel (knfsd) needs of a mount: file handles that open the same
# file after the kernel has dropped it, after a new name, and after the store was mounted again; and
# that never open another file. knfsd gives such handles to its clients, and clients keep them while
# the server restarts.
#
#   file_handles_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

# A handle is printed as TYPE:BYTES, in hexadecimal digits.
cat >"$work/handle.py" <<'END'
import ctypes, errno, os, sys

command, mountpoint, *arguments = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, MAX_HANDLE_SZ = -100, 128


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("handle", ctypes.c_ubyte * MAX_HANDLE_SZ)]


def check(result):
    if result < 0:
        sys.exit(errno.errorcode[ctypes.get_errno()])
    return result


def open_handle(text, flags):
    kind, data = text.split(":")
    data = bytes.fromhex(data)
    handle = Handle(len(data), int(kind, 16), (ctypes.c_ubyte * MAX_HANDLE_SZ)(*data))
    root = os.open(mountpoint, os.O_RDONLY | os.O_DIRECTORY)
    return check(libc.open_by_handle_at(root, ctypes.byref(handle), flags))


if command == "get":
    handle, mount_id = Handle(MAX_HANDLE_SZ), ctypes.c_int()
    path = os.path.join(mountpoint, arguments[0]).encode()
    check(libc.name_to_handle_at(AT_FDCWD, path, ctypes.byref(handle), ctypes.byref(mount_id), 0))
    print(f"{handle.type:x}:{bytes(handle.handle[:handle.bytes]).hex()}")
elif command == "read":
    with open(open_handle(arguments[0], os.O_RDONLY)) as file:
        print(file.read(), end="")
elif command == "append":
    with open(open_handle(arguments[0], os.O_WRONLY | os.O_APPEND), "w") as file:
        file.write(arguments[1])
        file.flush()
        os.fsync(file.fileno())
elif command == "path":  # of a directory, as the kernel has reconnected it to the root
    print(os.readlink(f"/proc/self/fd/{open_handle(arguments[0], os.O_RDONLY | os.O_DIRECTORY)}"))
END

handle() { timeout 60 python3 "$work/handle.py" "$1" "$mnt" "${@:2}"; } # COMMAND ARGUMENT...
reads() { # HANDLE CONTENT
  local content
  content=$(handle read "$1" 2>&1) || fail "the handle of \"$2\" does not open: $content"
  [[ $content == "$2" ]] || fail "the handle of \"$2\" opens a file with \"$content\""
}
is_stale() { # HANDLE
  local content
  ! content=$(handle read "$1" 2>&1) || fail "the handle opens a file with \"$content\""
  [[ $content == ESTALE ]] || fail "the handle fails with $content"
}
is_at() { # HANDLE PATH
  local path
  path=$(handle path "$1" 2>&1) || fail "the handle of the directory \"$2\" does not open: $path"
  [[ $path == "$mnt${2:+/$2}" ]] || fail "the handle of the directory \"$2\" opens $path"
}
# The kernel drops everything that no program uses, and tells the daemon.
drop_caches() {
  sync -f "$mnt"
  echo 2 >/proc/sys/vm/drop_caches
}
mount_again() { # [OPTION]
  "$siltfs" umount "$mnt"
  mount_it "$@"
}

make_and_mount
mkdir -p "$mnt/d/e/f"
echo -n content >"$mnt/d/e/f/file"
echo -n renamed >"$mnt/old"
echo -n linked >"$mnt/first"
ln "$mnt/first" "$mnt/second"
echo -n removed >"$mnt/removed"
mkdir "$mnt/gone"
file=$(handle get d/e/f/file)
directory=$(handle get d/e/f)
root=$(handle get .)
renamed=$(handle get old)
linked=$(handle get first)
removed=$(handle get removed)
gone=$(handle get gone)

step "handles open their files and directories after the kernel has dropped them"
drop_caches
is_at "$directory" d/e/f
reads "$file" content
drop_caches
reads "$file" content
is_at "$root" ''

step "handles follow renamed files, moved directories, and other links"
mv "$mnt/old" "$mnt/d/new"
echo -n another >"$mnt/old"
mv "$mnt/d/e" "$mnt/moved"
rm "$mnt/first"
drop_caches
reads "$renamed" renamed
reads "$linked" linked
reads "$file" content
is_at "$directory" moved/f

step "handles of removed files and directories are stale, also after new ones were made"
rm "$mnt/removed"
rmdir "$mnt/gone"
is_stale "$removed"
for ((i = 0; i < 200; ++i)); do echo -n "new $i" >"$mnt/new-$i"; done
echo -n again >"$mnt/removed"
mkdir "$mnt/gone"
is_stale "$removed"
is_stale "$gone"
drop_caches
is_stale "$removed"
is_stale "$gone"

all_hold() {
  reads "$file" "content$1"
  reads "$renamed" renamed
  reads "$linked" linked
  is_stale "$removed"
  is_stale "$gone"
  is_at "$directory" moved/f
  is_at "$root" ''
}

step "handles open the same files after the store was mounted again"
mount_again
all_hold ''
handle append "$file" ", longer"
[[ $(cat "$mnt/moved/f/file") == "content, longer" ]] || fail "the file has not been written through its handle"
mount_again ro
all_hold ', longer'
mount_again

step "new files after a remount do not get the inode numbers of removed files"
for ((i = 0; i < 200; ++i)); do echo -n "newer $i" >"$mnt/newer-$i"; done
all_hold ', longer'

step "after a crash of the daemon, the handle of a lost file opens no other file"
sync -f "$mnt"
echo -n lost >"$mnt/lost"
lost=$(handle get lost)
kill -KILL "$("$siltfs" stat --json "$mnt" | jq .pid)"
umount --lazy "$mnt"
mount_it
for ((i = 0; i < 200; ++i)); do echo -n "newest $i" >"$mnt/newest-$i"; done
if [[ -e $mnt/lost ]]; then rm "$mnt/lost"; fi # a commit may have come before the crash
is_stale "$lost"
all_hold ', longer'

step "handles of files in a snapshot hold until the snapshot is deleted"
"$siltfs" snapshot create "$mnt" monday >/dev/null
kept=$(handle get .snapshots/monday/moved/f/file)
kept_directory=$(handle get .snapshots/monday/moved)
[[ $kept != "$file" ]] || fail "a file and its copy in a snapshot have the same handle"
handle append "$file" ", changed"
drop_caches
reads "$kept" "content, longer"
reads "$file" "content, longer, changed"
mount_again
reads "$kept" "content, longer"
# To find the path of a directory, the kernel lists its parents. So it needs a .snapshots that is listed.
is_stale "$kept_directory"
mount_again snapdir=visible
is_at "$kept_directory" .snapshots/monday/moved
reads "$kept" "content, longer"
"$siltfs" snapshot delete "$mnt" monday >/dev/null
is_stale "$kept"
mount_again
is_stale "$kept"
"$siltfs" snapshot create "$mnt" tuesday >/dev/null
is_stale "$kept"
reads "$file" "content, longer, changed"

step "after a rollback, handles never open a file as it was before"
handle append "$file" ", once more"
[[ $(cat "$mnt/moved/f/file") == *", once more" ]] || fail "the file has not been written"
"$siltfs" snapshot rollback "$mnt" tuesday >/dev/null
# The handle is stale as long as the kernel knows the file from before.
content=$(handle read "$file" 2>&1) || [[ $content == ESTALE ]] || fail "the handle fails with $content"
[[ $content == ESTALE || $content == "content, longer, changed" ]] || fail "the file has \"$content\""
reads "$(handle get moved/f/file)" "content, longer, changed"
reads "$renamed" renamed
is_at "$directory" moved/f
mount_again
reads "$file" "content, longer, changed"

unmount_and_check
echo "all well"
