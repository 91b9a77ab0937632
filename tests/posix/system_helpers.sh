# Sourced by tests that call mount(8), umount(8) and fsck(8), after store_fixture.sh. These programs
# look for helpers in /sbin, which is /usr/sbin. The links that an installation puts there are put
# there in the test's own mount namespace.
#
# shellcheck shell=bash

# Runs the command; the exit code must be CODE.
expect() { # CODE COMMAND...
  local want=$1 code=0
  shift
  timeout 120 "$@" >"$work/out" 2>"$work/err" || code=$?
  ((code == want)) || fail "exit code $code instead of $want: $* ($(cat "$work/out" "$work/err"))"
}
said() { grep -qF -- "$1" "$work/err" || fail "\"$1\" is not in: $(cat "$work/err")"; }

# In the place of a directory of the system comes $work/NAME, a directory of links to its entries.
# Entries that are added to $work/NAME are then seen in the directory.
cover() { # DIRECTORY NAME
  local directory entry
  directory=$(readlink -f "$1")
  mkdir "$work/$2-of-system" "$work/$2"
  mount --bind "$directory" "$work/$2-of-system"
  for entry in "$work/$2-of-system"/*; do ln -s "$entry" "$work/$2/"; done
  mount --bind "$work/$2" "$directory"
}

cover /sbin sbin
for link in mkfs mount umount fsck mount.fuse umount.fuse; do
  ln -sfn "$(readlink -f "$siltfs")" "$work/sbin/$link.siltfs"
done
