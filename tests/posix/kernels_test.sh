#!/bin/bash
# Uses a store with every kernel of the chunker and of SHA-1 in turn. The daemon reports the kernel
# in use. All kernels cut and name alike: data written with one kernel is a duplicate for the next
# one.
#
#   kernels_test.sh SILTFS SILTFS-BENCH
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
bench=$(realpath "$2")

figure() { "$siltfs" stat --json "$mnt" | sed -n "s/^ *\"$1\": \"\?\([^\",]*\)\"\?,\?$/\1/p"; }

mapfile -t kernels < <("$bench" chunker --random 100K --rounds 1 --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p')
((${#kernels[@]} >= 2)) || fail "only these kernels: ${kernels[*]}"

# The data: random bytes, runs of zeros and of another byte, and a part of a program.
{
  head -c 3000000 /dev/urandom
  head -c 700000 /dev/zero
  head -c 4000000 "$siltfs"
  head -c 300000 /dev/zero | tr '\0' 'a'
} >"$work/data"

"$siltfs" mkfs "$store"
unique=
for kernel in "${kernels[@]}"; do
  for sha1_kernel in evp ""; do
    step "$kernel, SHA-1 by ${sha1_kernel:-the default kernel}"
    SILTFS_CHUNKER_KERNEL=$kernel SILTFS_SHA1_KERNEL=$sha1_kernel mount_it
    [[ $(figure chunker_kernel) == "$kernel" ]] || fail "the daemon says it cuts by $(figure chunker_kernel)"
    [[ -z $sha1_kernel || $(figure sha1_kernel) == evp ]] || fail "the daemon says it names by $(figure sha1_kernel)"
    # Writes in order and without the page cache of the operating system. So no part of the file is
    # folded before the part in front of it was written.
    dd if="$work/data" of="$mnt/by $kernel $sha1_kernel" bs=1M oflag=direct status=none
    unmount_and_check
    mount_it
    cmp "$work/data" "$mnt/by $kernel $sha1_kernel" || fail "other data"
    now=$(figure unique_bytes)
    : "${unique:=$now}"
    ((unique > 3000000)) || fail "only $unique bytes are unique"
    ((now == unique)) || fail "$now unique bytes instead of $unique"
    unmount_and_check
  done
done

step "an unknown kernel is refused"
code=0
SILTFS_CHUNKER_KERNEL=abacus "$siltfs" stat "$store" >"$work/out" 2>&1 || code=$?
((code == 2)) || fail "exit code $code"
grep -q "SILTFS_CHUNKER_KERNEL.*abacus.*scalar, portable" "$work/out" || fail "$(cat "$work/out")"
SILTFS_SHA1_KERNEL=quill "$siltfs" stat "$store" >"$work/out" 2>&1 && fail "an unknown SHA-1 kernel is accepted"
grep -q "SILTFS_SHA1_KERNEL.*quill.*evp" "$work/out" || fail "$(cat "$work/out")"
SILTFS_CHUNKER_KERNEL=abacus "$siltfs" mount "$store" "$mnt" >"$work/out" 2>&1 && fail "mounted"
grep -q "abacus" "$work/out" || fail "$(cat "$work/out")"
! mounted || fail "mounted"
echo "all well"
