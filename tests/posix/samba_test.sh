#!/bin/bash
# Exports a mount with Samba, as in docs/sharing.md, and uses it by smbclient. The test is skipped if
# Samba is not installed.
#
#   samba_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/own_network.sh
source "$(dirname "$0")/own_network.sh"
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/file_server.sh
source "$(dirname "$0")/file_server.sh"

needs_programs smbd smbpasswd smbclient smbcacls script
compgen -G '/usr/lib/*/samba/vfs/streams_xattr.so' >/dev/null || {
  echo "SKIPPED: samba-vfs-modules is not installed"
  exit 77
}

# Everything that Samba keeps is in the directory of the test. NT1: smbclient takes locks in the
# server only by this protocol.
samba=$work/samba
mkdir "$samba"
cat >"$work/smb.conf" <<END
[global]
  server role = standalone server
  server min protocol = NT1
  client min protocol = NT1
  disable netbios = yes
  smb ports = 445
  load printers = no
  private dir = $samba
  lock directory = $samba
  state directory = $samba
  cache directory = $samba
  pid directory = $samba
  ncalrpc dir = $samba/ncalrpc
  log file = $samba/log
  passdb backend = smbpasswd:$samba/passwords

[store]
  path = $mnt
  read only = no
  ea support = yes
  store dos attributes = yes
  vfs objects = shadow_copy2 acl_xattr streams_xattr
  shadow:snapdir = .snapshots
  shadow:format = nightly-%Y.%m.%d-%H.%M.%S
  shadow:sort = desc
END

start_server() {
  smbd --foreground --configfile "$work/smb.conf" --debug-stdout >"$work/smbd.log" 2>&1 &
  server=$!
  await_port 445 "$server" "$work/smbd.log"
}
stop_server() {
  kill "$server"
  wait "$server" || true
}
client_options=(--configfile "$work/smb.conf" --user root%secret //127.0.0.1/store)
# Runs commands of smbclient, which prints failures and goes on. OUTPUT is what it prints.
smb() { # COMMAND...
  local commands
  commands=$(printf '%s;' "$@")
  timeout 120 smbclient "${client_options[@]}" --command "$commands" >"$work/out" 2>&1 || true
}
works() { # COMMAND...
  smb "$@"
  ! grep -E 'NT_STATUS|rror|failed' "$work/out" || fail "$* prints: $(cat "$work/out" "$work/smbd.log")"
}
fails() { # NT-STATUS COMMAND...
  smb "${@:2}"
  grep -q "$1" "$work/out" || fail "${*:2} does not fail with $1: $(cat "$work/out")"
}
prints() { # REGULAR-EXPRESSION
  grep -qE -- "$1" "$work/out" || fail "\"$1\" is not in: $(cat "$work/out")"
}

make_and_mount
printf 'secret\nsecret\n' | smbpasswd -c "$work/smb.conf" -s -a root >/dev/null
start_server
cd "$work"

step "files and directories are made, read, renamed and removed"
noise 100000000 1 >"$work/large"
noise 12345 2 >"$work/small"
works 'mkdir d' 'put large d/large' 'put small d/small' 'get d/large back' 'ls d/*'
prints 'large .* 100000000 '
cmp "$work/large" "$mnt/d/large" || fail "a large file that the client wrote differs"
cmp "$work/large" "$work/back" || fail "a large file that the client read differs"
works 'rename d/small d/renamed' 'mkdir d/e' 'rename d/e f' 'put small d/large'
cmp "$work/small" "$mnt/d/renamed" || fail "a renamed file differs"
cmp "$work/small" "$mnt/d/large" || fail "a file written again differs"
[[ -d $mnt/f && ! -e $mnt/d/e ]] || fail "a directory was not renamed"
fails NT_STATUS_DIRECTORY_NOT_EMPTY 'rmdir d'
fails NT_STATUS_OBJECT_NAME_COLLISION 'mkdir f'
fails NT_STATUS_OBJECT_NAME_NOT_FOUND 'get d/none back'
works 'del d/renamed' 'del d/large' 'rmdir d' 'rmdir f'
[[ -z $(ls "$mnt") ]] || fail "not everything was removed: $(ls "$mnt")"

step "a client finds names in any case, as programs of Windows expect"
echo text >"$mnt/ReadMe.txt"
works 'get readme.TXT back'
cmp "$mnt/ReadMe.txt" "$work/back" || fail "a file found in another case differs"

step "attributes of DOS, lists of access rights, and streams are extended attributes"
works 'put small attributes' 'setmode attributes +rsh' 'allinfo attributes'
prints 'attributes: .*HSR|attributes: .*RHS'
getfattr -n user.DOSATTRIB "$mnt/attributes" >/dev/null 2>&1 || fail "there is no attribute user.DOSATTRIB"
timeout 60 smbcacls --configfile "$work/smb.conf" --user root%secret //127.0.0.1/store attributes \
  --add "ACL:S-1-1-0:ALLOWED/0x0/READ" >"$work/out" 2>&1 || fail "smbcacls: $(cat "$work/out")"
timeout 60 smbcacls --configfile "$work/smb.conf" --user root%secret //127.0.0.1/store attributes >"$work/out"
prints '^ACL:.*veryone:ALLOWED/0x0/R'
getfattr -n security.NTACL "$mnt/attributes" >/dev/null 2>&1 || fail "there is no attribute security.NTACL"
works 'setmode attributes -rsh' 'put small attributes:second' 'allinfo attributes' 'get attributes:second back'
prints 'stream: \[:second:\$DATA\], 12345 bytes'
cmp "$work/small" "$work/back" || fail "a stream differs"
works 'del attributes'

step "a client sees the size of the store and its free space"
works 'ls'
read -r total available < <(sed -nE 's/^\s*([0-9]+) blocks of size 1024\. ([0-9]+) blocks available$/\1 \2/p' "$work/out")
(($(stat -f -c '%S * %b / 1024' "$mnt") == total)) || fail "the client sees $total KiB: $(cat "$work/out")"
((available > 0 && available < total)) || fail "the client sees $available KiB free"
works 'put large large'

step "a lock of a client keeps other programs from locking the same bytes"
# Prints whether bytes 10 to 19 of the file can be locked.
cat >"$work/lock.py" <<'END'
import fcntl, sys

with open(sys.argv[1], "r+") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10)
        print("free")
    except OSError:
        print("locked")
END
echo "some text to lock in a file" >"$mnt/locked"
# On a terminal the client prints each answer at once.
coproc client {
  exec script --quiet --flush --return --command \
    "smbclient --option='client max protocol=NT1' ${client_options[*]}" /dev/null 2>&1
}
client_process=$client_PID
tell() { echo "$*" >&"${client[1]}"; }
await() { # STATE
  local i
  for ((i = 0; i < 1200; ++i)); do
    [[ $(python3 "$work/lock.py" "$mnt/locked") != "$1" ]] || return 0
    kill -0 "$client_process" || break
    sleep 0.05
  done
  fail "the bytes are not $1: $(tail -n 20 "$work/smbd.log")"
}
tell posix
tell posix_open /locked 0644
while read -r -t 20 line <&"${client[0]}" && [[ $line != *fnum* ]]; do :; done
handle=$(tr -d '\r' <<<"${line##*fnum }")
[[ $handle =~ ^[0-9]+$ ]] || fail "the client has not opened the file: $line"
await free
tell lock "$handle" w 10 10
await locked
tell unlock "$handle" 10 10
await free
tell lock "$handle" w 10 10
await locked

step "a store cannot be unmounted while a client uses it; locks end with the connection"
! "$siltfs" umount "$mnt" 2>"$work/err" || fail "it was unmounted"
grep -q 'in use' "$work/err" || fail "$(cat "$work/err")"
tell quit
wait "$client_process" || true
await free

step "snapshots are previous versions"
"$siltfs" snapshot create "$mnt" nightly-2026.01.02-03.04.05 >/dev/null
works 'del locked' 'put small large' 'allinfo large'
prints '@GMT-2026.01.02-03.04.05'
works 'get @GMT-2026.01.02-03.04.05\large back'
cmp "$work/large" "$work/back" || fail "the previous version differs"
works 'get @GMT-2026.01.02-03.04.05\locked back' 'ls @GMT-2026.01.02-03.04.05\*'
[[ $(cat "$work/back") == "some text to lock in a file" ]] || fail "a removed file differs"
fails NT_STATUS 'put small @GMT-2026.01.02-03.04.05\large'

step "the server goes on when the store was mounted again"
works 'mkdir kept' 'put large kept/large' 'put small kept/large:stream' 'setmode kept/large +h'
mount_on_another_device
works 'get kept/large back' 'get kept/large:stream stream' 'put small kept/new'
smb 'allinfo kept/large' # which also looks for the file in the snapshot
prints 'attributes: .*H'
cmp "$work/large" "$work/back" || fail "the file differs"
cmp "$work/small" "$work/stream" || fail "the stream differs"
cmp "$work/small" "$mnt/kept/new" || fail "a new file differs"

step "the store is sound"
stop_server
unmount_and_check
echo "all well"
