# Sourced by tests of this folder, after store_fixture.sh. Runs commands as a user without rights.
#
# shellcheck shell=bash

other_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
as_nobody() { "${other_user[@]}" "$@"; }

# Gives the other user an empty directory for a store, a mountpoint, and the file $work/own-log. On
# some machines only the superuser may open /dev/fuse; in this mount namespace every user may.
let_other_user_mount() { # STORE MOUNTPOINT
  mkdir "$work/devices"
  mount -t tmpfs -o dev siltfs-test "$work/devices"
  mknod --mode 666 "$work/devices/fuse" c 10 229
  chmod 666 "$work/devices/fuse"
  mount --bind "$work/devices/fuse" /dev/fuse
  chmod 755 "$disk"
  mkdir "$1" "$2"
  touch "$work/own-log"
  chown 65534:65534 "$1" "$2" "$work/own-log"
}
