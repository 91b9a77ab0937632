# Sourced by the tests of this folder: a store of their own, really mounted with the real program.
#
# What a test does before it sources this: `set -euo pipefail`, `siltfs` set to the program, the script's arguments
# untouched. It is then started once more in mount and process namespaces of its own, so that neither a mount nor a
# daemon is left behind whatever becomes of it; root and /dev/fuse are needed, and without them it fails.
#
# shellcheck shell=bash

if [[ -z ${SILTFS_TEST_CONTAINED:-} ]]; then
  # In a chroot whose root is no mount point nothing can be made private.
  propagation=private
  unshare --mount --propagation private true 2>/dev/null || propagation=unchanged
  SILTFS_TEST_CONTAINED=1 exec unshare --mount --propagation "$propagation" --pid --fork --kill-child --mount-proc "$0" "$@"
fi

siltfs=$(realpath "$siltfs")
work=$(mktemp -d --tmpdir siltfs-posix-XXXXXX)
chmod 755 "$work" # other users go through it
disk=$work/disk   # below the store
store=$disk/store
mnt=$work/mnt
mkdir "$disk" "$mnt"

mounted() { grep -q " $mnt fuse.siltfs " /proc/self/mounts; }

clean_up() {
  local code=$?
  cd /
  while grep -q " $work" /proc/self/mounts; do umount --lazy "$(awk -v w="$work" '$2 ~ w {print $2}' /proc/self/mounts | tail -1)"; done
  # The first process of a namespace has started all others in it; none may write any more while its files go.
  if (($$ == 1)) && kill -KILL -- -1 2>/dev/null; then wait; fi
  if ((code != 0)) && [[ -s $work/log ]]; then sed 's/^/log: /' "$work/log" >&2; fi
  rm -rf --one-file-system "$work" || rm -rf --one-file-system "$work"
  exit $code
}
trap clean_up EXIT

step() { echo "--- $*"; }
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

make_and_mount() {
  "$siltfs" mkfs "$store"
  mount_it
}
mount_it() { # [OPTION]
  "$siltfs" mount "$store" "$mnt" -o "allow_other,log=$work/log${1:+,$1}"
  mounted || fail "not in the mount table"
}
# Unmounts, and the store must be without a fault down to the last byte. What the daemon logged is shown, as a finding
# may explain a failure.
unmount_and_check() {
  "$siltfs" umount "$mnt"
  ! mounted || fail "still mounted"
  local code=0
  "$siltfs" fsck -n --data "$store" >"$work/fsck" 2>&1 || code=$?
  ((code == 0)) || fail "fsck --data ends with $code: $(cat "$work/fsck")"
}
