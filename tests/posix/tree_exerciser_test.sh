#!/bin/bash
# Several processes work in one tree. Afterwards the tree and the store are consistent, and the tree
# is unchanged after an unmount and a mount.
#
#   tree_exerciser_test.sh SILTFS TREE_EXERCISER [OPTION...]
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
exerciser=$2
options=("${@:3}")

make_and_mount
step "exercise"
"$exerciser" "${options[@]}" "$mnt/tree" >/dev/null || fail "exit code $? of the exerciser"
# The kernel's time of a write may differ from the stored time by a tick, if writeback sent the time
# before the data. The caches are dropped, so that the test compares stored times.
sync --file-system "$mnt"
echo 2 >/proc/sys/vm/drop_caches
"$exerciser" --operations 0 "$mnt/tree" >"$work/before" || fail "exit code $? of the first look"
[[ -s $work/before ]] || fail "an empty tree"
step "unmount and check"
unmount_and_check
step "mount again"
mount_it
"$exerciser" --operations 0 "$mnt/tree" >"$work/after" || fail "exit code $? of the second look"
diff "$work/before" "$work/after" >"$work/diff" || fail "another tree: $(head -40 "$work/diff")"
step "run the exerciser again on the same tree"
"$exerciser" "${options[@]}" --seed 1000 "$mnt/tree" >"$work/before" || fail "exit code $? of the exerciser"
rm -r "$mnt/tree"
unmount_and_check
echo "all well"
