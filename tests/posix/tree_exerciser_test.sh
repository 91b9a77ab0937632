#!/bin/bash
# Several processes at work in one tree; the tree is sound then, the store is, and the tree is still the same after the
# store was unmounted and mounted again.
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
"$exerciser" "${options[@]}" "$mnt/tree" >"$work/before" || fail "exit code $? of the exerciser"
cat "$work/before"
step "unmount and check"
unmount_and_check
step "mount again"
mount_it
"$exerciser" --operations 0 "$mnt/tree" >"$work/after" || fail "exit code $? of the second look"
cmp "$work/before" "$work/after" || fail "another tree: $(cat "$work/after")"
step "once more on top of it"
"$exerciser" "${options[@]}" --seed 1000 "$mnt/tree" || fail "exit code $? of the exerciser"
rm -r "$mnt/tree"
unmount_and_check
echo "all well"
