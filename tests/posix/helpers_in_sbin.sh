# Sourced by tests of this folder, after store_fixture.sh. Puts the links that an installation has in
# /usr/sbin there, in the test's own mount namespace. mount(8), umount(8) and fsck(8) look for helpers
# only in /sbin, which is /usr/sbin. A directory of links to the system's programs, and the helpers of
# siltfs, takes its place.
#
# shellcheck shell=bash

put_helpers_in_sbin() {
  local sbin program link
  sbin=$(readlink -f /sbin)
  mkdir "$work/system" "$work/sbin"
  mount --bind "$sbin" "$work/system"
  for program in "$work/system"/*; do ln -s "$program" "$work/sbin/"; done
  for link in mkfs mount umount fsck mount.fuse umount.fuse; do
    ln -sfn "$(readlink -f "$siltfs")" "$work/sbin/$link.siltfs"
  done
  mount --bind "$work/sbin" "$sbin"
}
