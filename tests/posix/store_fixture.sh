# Sourced by the tests of this folder. Provides a separate store, mounted with the real program.
#
# Before it sources this file, a test runs `set -euo pipefail`, sets `siltfs` to the program, and
# leaves its arguments unchanged. The fixture then starts the test's script again in its own mount
# and process namespaces, so that no mount and no daemon survives the test. It needs root and
# /dev/fuse, and fails without them.
#
# shellcheck shell=bash

if [[ -z ${SILTFS_TEST_CONTAINED:-} ]]; then
  # Private propagation fails if the root of a chroot is not a mount point.
  propagation=private
  unshare --mount --propagation private true 2>/dev/null || propagation=unchanged
  SILTFS_TEST_CONTAINED=$propagation exec unshare --mount --propagation "$propagation" --pid --fork --kill-child --mount-proc "$0" "$@"
fi

siltfs=$(realpath "$siltfs")
work=$(mktemp -d --tmpdir siltfs-posix-XXXXXX)
chmod 755 "$work" # other users must be able to pass it
disk=$work/disk   # the disk below the store
store=$disk/store
mnt=$work/mnt
mkdir "$disk" "$mnt"

mounted() { grep -q " $mnt fuse.siltfs " /proc/self/mounts; }

clean_up() {
  local code=$?
  cd /
  while grep -q " $work" /proc/self/mounts; do umount --lazy "$(awk -v w="$work" '$2 ~ w {print $2}' /proc/self/mounts | tail -1)"; done
  # If this is the first process of its process namespace, it kills all others there. So no process
  # writes while the test's files are removed.
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

# Fails if the last command has said more in $work/err than that it runs, which a slow one does after three
# seconds.
said_nothing() { ! grep -v ': running, [0-9]* s so far$' "$work/err" || fail "it says: $(cat "$work/err")"; }

command -v openssl >/dev/null || fail "openssl is not installed: run tools/install-dependencies"
# Prints unique bytes that depend on a seed. SIZE is as for `head -c`.
noise() { # SIZE SEED
  openssl enc -aes-128-ctr -nosalt -k "$2" -md sha256 -in /dev/zero 2>/dev/null | head -c "$1" || true
}

# With SILTFS_TEST_BUCKET_STORES=1, `siltfs mkfs` keeps the segments of each store in a bucket, with a
# cache of 256 MiB. SILTFS_TEST_BUCKET_FAULTS is the probability that a request fails.
if [[ -n ${SILTFS_TEST_BUCKET_STORES:-} ]]; then
  # shellcheck source=tests/posix/bucket_stores.sh
  source "$(dirname "${BASH_SOURCE[0]}")/bucket_stores.sh"
fi

make_and_mount() {
  "$siltfs" mkfs "$store"
  mount_it
}
mount_it() { # [OPTION]
  "$siltfs" mount "$store" "$mnt" \
    -o "allow_other,log=$work/log,io_uring=${SILTFS_TEST_IO_URING:-auto}${1:+,$1}"
  mounted || fail "not in the mount table"
}
# Unmounts the store and checks every byte of it. Prints the daemon's log, because it may explain a
# failure.
unmount_and_check() {
  "$siltfs" umount "$mnt"
  ! mounted || fail "still mounted"
  local code=0
  "$siltfs" fsck -n --data "$store" >"$work/fsck" 2>&1 || code=$?
  ((code == 0)) || fail "fsck --data ends with $code: $(cat "$work/fsck")"
}
