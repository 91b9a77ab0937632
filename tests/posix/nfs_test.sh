#!/bin/bash
# Exports a mount by NFS with nfs-ganesha, a server in user space that opens files by their handles as
# the server in the kernel does. The clients are the programs of libnfs, and a program below that keeps
# file handles while the store is mounted again. The test is skipped if these are not installed.
#
#   nfs_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/own_network.sh
source "$(dirname "$0")/own_network.sh"
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/file_server.sh
source "$(dirname "$0")/file_server.sh"

needs_programs ganesha.nfsd rpcbind nfs-ls nfs-cat
compgen -G '/usr/lib/*/ganesha/libfsalvfs.so' >/dev/null || {
  echo "SKIPPED: nfs-ganesha-vfs is not installed"
  exit 77
}

# Version 3 needs the server's ports by way of rpcbind, which keeps its socket and its lock in /run.
mkdir "$work/recovery"
mount -t tmpfs siltfs-test /run
rpcbind -f &
await_port 111 $! /dev/null

# The grace period would keep clients waiting that have no locks to reclaim.
cat >"$work/ganesha.conf" <<END
NFS_CORE_PARAM {
  Protocols = 3, 4; MNT_Port = 20048; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; mount_path_pseudo = true;
}
NFSv4 { Graceless = true; RecoveryRoot = $work/recovery; }
EXPORT {
  Export_Id = 1; Path = $mnt; Pseudo = /store; Filesystem_id = 1.1;
  Access_Type = RW; Squash = none; SecType = sys; Protocols = 3, 4; Transports = TCP;
  FSAL { Name = VFS; }
}
END

start_server() {
  ganesha.nfsd -F -f "$work/ganesha.conf" -L "$work/ganesha.log" -p "$work/ganesha.pid" \
    >"$work/ganesha.out" 2>&1 &
  server=$!
  await_port 2049 "$server" "$work/ganesha.log"
}
stop_server() {
  kill "$server"
  wait "$server" || true
}
url() { # VERSION PATH
  echo "nfs://127.0.0.1/store$2?version=$1"
}
nfs() { timeout 120 "nfs-$1" "${@:2}"; } # ls|cat URL

# A client that reads one command from each line, and answers each with one line.
cat >"$work/client.py" <<'END'
import ctypes, ctypes.util, os, sys

PIECE = 2048  # libnfs 4 fails to encode larger writes by version 4
url = sys.argv[1]
lib = ctypes.CDLL(ctypes.util.find_library("nfs"))
lib.nfs_init_context.restype = lib.nfs_parse_url_dir.restype = ctypes.c_void_p
lib.nfs_get_error.restype = ctypes.c_char_p


class Url(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("server", "path", "file")]


context = ctypes.c_void_p(lib.nfs_init_context())
parsed = ctypes.cast(lib.nfs_parse_url_dir(context, url.encode()), ctypes.POINTER(Url)).contents


def check(result):
    if result < 0:
        raise OSError(-result, lib.nfs_get_error(context).decode())
    return result


files = {}
check(lib.nfs_mount(context, parsed.server, parsed.path))
print("mounted", flush=True)
for line in sys.stdin:
    command, name, *rest = line.split()
    try:
        if command == "open":
            files[name] = ctypes.c_void_p()
            check(lib.nfs_open(context, rest[0].encode(), os.O_RDWR | os.O_CREAT, ctypes.byref(files[name])))
            print("opened", flush=True)
        elif command == "put":
            with open(rest[0], "rb") as source:
                while data := source.read(PIECE):
                    offset = ctypes.c_uint64(source.tell() - len(data))
                    check(lib.nfs_pwrite(context, files[name], offset, ctypes.c_uint64(len(data)), data))
            print("done", flush=True)
        elif command == "close":
            check(lib.nfs_close(context, files.pop(name)))
            print("done", flush=True)
        elif command == "call":
            arguments = [int(text) if text.isdigit() else text.encode() for text in rest]
            check(getattr(lib, f"nfs_{name}")(context, *arguments))
            print("done", flush=True)
    except OSError as error:
        print(error, flush=True)
END

start_client() { # VERSION
  coproc client { exec python3 "$work/client.py" "$(url "$1" '')" 2>"$work/client.err"; }
  client_process=$client_PID
  read -r -t 120 _ <&"${client[0]}" || fail "the client: $(cat "$work/client.err")"
}
stop_client() {
  kill "$client_process"
  wait "$client_process" 2>/dev/null || true
}
client() { # COMMAND...
  local answer
  echo "$*" >&"${client[1]}"
  read -r -t 120 answer <&"${client[0]}" || fail "the client does not answer: $(cat "$work/client.err")"
  echo "$answer"
}
expect_answer() { # ANSWER COMMAND...
  local answer
  answer=$(client "${@:2}")
  [[ $answer == $1 ]] || fail "the client answers \"$answer\" instead of \"$1\" to: ${*:2}"
}

# A client of version 3 that gets the handles of files on its command line, and so can keep them while
# the server restarts. Handles are printed in hexadecimal digits.
cat >"$work/handle.py" <<'END'
import socket, struct, sys

STALE = 70
NFS, MOUNT = (100003, 2049), (100005, 20048)  # programs and their ports


def opaque(data):
    return struct.pack(f">I{len(data)}s{-len(data) % 4}x", len(data), data)


def take_opaque(reply, at):
    (size,) = struct.unpack_from(">I", reply, at)
    return reply[at + 4 : at + 4 + size]


def call(program, procedure, arguments):
    user = struct.pack(">I", 0) + opaque(b"test") + struct.pack(">III", 0, 0, 0)
    header = struct.pack(">IIIIIII", 1, 0, 2, program[0], 3, procedure, 1) + opaque(user) + bytes(8)
    message = header + arguments
    with socket.create_connection(("127.0.0.1", program[1]), timeout=60) as connection:
        connection.sendall(struct.pack(">I", 1 << 31 | len(message)) + message)
        stream, reply, last = connection.makefile("rb"), b"", False
        while not last:
            (fragment,) = struct.unpack(">I", stream.read(4))
            last = fragment >> 31
            reply += stream.read(fragment & 0x7FFFFFFF)
    _, _, denied, _, verifier, failed, status = struct.unpack_from(">IIIIIII", reply)
    assert not denied and not verifier and not failed, reply
    if status:
        sys.exit("STALE" if status == STALE else f"error {status}")
    return reply[28:]


command, *arguments = sys.argv[1:]
if command == "find":
    handle = take_opaque(call(MOUNT, 1, opaque(b"/store")), 0)
    for name in arguments[0].strip("/").split("/"):
        handle = take_opaque(call(NFS, 3, opaque(handle) + opaque(name.encode())), 0)
    print(handle.hex())
elif command == "read":
    reply = call(NFS, 6, opaque(bytes.fromhex(arguments[0])) + struct.pack(">QI", 0, 1000))
    (has_attributes,) = struct.unpack_from(">I", reply)
    print(take_opaque(reply, 4 + (84 if has_attributes else 0) + 8).decode(), end="")
elif command == "write":
    data, file_sync = arguments[1].encode(), 2
    place = struct.pack(">QII", 0, len(data), file_sync)
    call(NFS, 7, opaque(bytes.fromhex(arguments[0])) + place + opaque(data))
END
handle() { timeout 120 python3 "$work/handle.py" "$@"; } # COMMAND ARGUMENT...
reads() { # HANDLE CONTENT
  local content
  content=$(handle read "$1" 2>&1) || fail "the handle of \"$2\" does not open: $content"
  [[ $content == "$2" ]] || fail "the handle of \"$2\" opens a file with \"$content\""
}

make_and_mount
mkdir -p "$mnt/d/e"
noise 20000000 1 >"$work/content"
cp "$work/content" "$mnt/d/content"
echo -n text >"$mnt/d/e/file"
start_server

for version in 3 4; do
  step "version $version: files and directories are read, written and listed"
  [[ $(nfs cat "$(url "$version" /d/e/file)") == text ]] || fail "a small file differs"
  nfs cat "$(url "$version" /d/content)" | cmp - "$work/content" || fail "a large file differs"
  noise 10000000 "$version" >"$work/new"
  start_client "$version"
  expect_answer opened open new "/d/new$version"
  expect_answer done put new "$work/new"
  expect_answer done close new
  cmp "$work/new" "$mnt/d/new$version" || fail "a file that the client wrote differs"
  nfs ls "$(url "$version" /d)" | awk '{print $NF}' | LC_ALL=C sort >"$work/names"
  (cd "$mnt/d" && printf '%s\n' *) | LC_ALL=C sort | diff - "$work/names" || fail "the names differ"

  step "version $version: names are made, changed and removed"
  expect_answer done call mkdir /d/made
  expect_answer done call rename "/d/new$version" /d/made/renamed
  cmp "$work/new" "$mnt/d/made/renamed" || fail "a renamed file differs"
  expect_answer done call link /d/made/renamed /d/made/linked
  expect_answer done call symlink linked /d/made/symbolic
  [[ $mnt/d/made/symbolic -ef $mnt/d/made/renamed ]] || fail "the links differ"
  expect_answer done call truncate /d/made/renamed 12345
  cmp <(head -c 12345 "$work/new") "$mnt/d/made/linked" || fail "a truncated file differs"
  expect_answer '*EXIST*' call mkdir /d/made
  expect_answer '*NOTEMPTY*' call rmdir /d/made
  for name in renamed linked symbolic; do expect_answer done call unlink "/d/made/$name"; done
  expect_answer done call rmdir /d/made
  [[ ! -e $mnt/d/made ]] || fail "a directory is not removed"
  expect_answer '*NOENT*' call rmdir /d/made
  stop_client
done

step "the handles of a client hold while the kernel drops its caches, and files move"
echo -n other >"$mnt/other"
echo -n removed >"$mnt/removed"
file=$(handle find /d/e/file)
removed=$(handle find /removed)
sync -f "$mnt"
echo 2 >/proc/sys/vm/drop_caches
mv "$mnt/d/e/file" "$mnt/moved"
mv "$mnt/other" "$mnt/d/e/file"
reads "$file" text

is_stale() { # HANDLE
  local content
  ! content=$(handle read "$1" 2>&1) || fail "the handle opens a file with \"$content\""
  [[ $content == STALE ]] || fail "the handle fails with $content"
}

step "they hold while the server restarts, and the handle of a removed file is stale"
stop_server
rm "$mnt/removed"
start_server
reads "$file" text
is_stale "$removed"

# nfs-ganesha puts the device number of the mount into its handles.
step "they hold after the store was mounted again on the same device number"
device=$(stat -c %d "$mnt")
stop_server
for ((i = 0; i < 10; ++i)); do
  "$siltfs" umount "$mnt"
  mount_it
  [[ $(stat -c %d "$mnt") != "$device" ]] || break
done
for ((i = 0; i < 50; ++i)); do echo "new $i" >"$mnt/new-$i"; done
start_server
if [[ $(stat -c %d "$mnt") == "$device" ]]; then
  reads "$file" text
  handle write "$file" TEXT
  [[ $(cat "$mnt/moved") == TEXT && $(cat "$mnt/d/e/file") == other ]] || fail "the client has written another file"
  is_stale "$removed"
else
  echo "SKIPPED: another mount has the device number now"
fi

step "on another device number they are stale, and clients find the files by their names"
file=$(handle find /moved)
content=$(cat "$mnt/moved")
stop_server
mount_on_another_device
start_server
is_stale "$file"
reads "$(handle find /moved)" "$content"

step "the store cannot be unmounted while the server has it, and is sound after that"
! "$siltfs" umount "$mnt" 2>"$work/err" || fail "it was unmounted"
grep -q 'in use' "$work/err" || fail "$(cat "$work/err")"
stop_server
unmount_and_check
echo "all well"
