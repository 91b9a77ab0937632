#!/bin/bash
# Rollbacks of a mounted store: programs see the files of the snapshot at once, whatever the kernel
# has cached of the files before.
#
#   rollback_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/command_checks.sh
source "$(dirname "$0")/command_checks.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

# The exit code must be CODE.
snapshot() { run_json "$1" snapshot "${@:2}"; } # CODE ARGUMENT...
# Makes the kernel know all names, attributes and contents.
read_all() {
  find "$mnt" -printf '%p %l %s %m %T@\n' >/dev/null
  find "$mnt" -type f -print0 | xargs -0 cat >/dev/null
  ! stat "$mnt/missing" "$mnt/tree/missing" "$mnt/later" 2>/dev/null || fail "they exist"
}

step "all files are those of the snapshot, and the kernel has cached others"
make_and_mount
make_source
cp -a "$src/." "$mnt/"
read_all
snapshot 0 create "$mnt" before
cp -a "$src" "$work/before"
noise 4M other >"$mnt/tree/deep/large"
noise 3000 other >"$mnt/tree/small" # of the same size
rm -r "$mnt/other" "$mnt/tree/deep/file-1"
mv "$mnt/tree/deep/deeper" "$mnt/moved"
ln -sfn elsewhere "$mnt/tree/link"
mv "$mnt/tree/deep/file-9" "$mnt/tree/deep/file-10"
mkdir "$mnt/tree/deep/file-1" "$mnt/new"
echo new >"$mnt/new/file"
echo later >"$mnt/later"
echo in-place-of-missing >"$mnt/tree/missing"
chmod 600 "$mnt/tree/nothing"
chown 5:6 "$mnt/tree/empty"
chown -h 9:9 "$mnt/tree/dangling"
setfattr -n user.note -v 'another value' "$mnt/tree/small"
setfacl -b "$mnt/tree/deep/file-8"
truncate -s 100 "$mnt/tree/sparse"
find "$mnt" -type f -print0 | xargs -0 cat >/dev/null
find "$mnt" -printf '%p %l %s %m %T@\n' >/dev/null
cp -a "$mnt" "$work/after"
snapshot 0 rollback "$mnt" before --keep-as after
holds '.kept.name == "after" and .snapshot == "before"'
same_trees "$work/before/" "$mnt/"
[[ ! -e $mnt/later && ! -e $mnt/tree/missing && -d $mnt/other ]] || fail "the names are wrong"
[[ -f $mnt/tree/deep/file-1 && $(<"$mnt/tree/deep/file-10") == "file 10" ]] || fail "wrong files"
[[ $(readlink "$mnt/tree/link") == small ]] || fail "the link is another one"
same_trees "$work/after/" "$mnt/.snapshots/after/"
[[ -z $("$siltfs" snapshot diff "$mnt" before) ]] || fail "the files differ from those of before"

step "a rollback to the state before undoes the first one"
snapshot 0 rollback "$mnt" after --keep-as undone
same_trees "$work/after/" "$mnt/"
[[ $(<"$mnt/later") == later && ! -e $mnt/other ]] || fail "the second rollback is wrong"
snapshot 0 list "$mnt" --no-sizes
holds '.snapshots | length == 3'

step "programs in directories that are gone, and in those that are not"
mkdir "$mnt/gone"
(cd "$mnt/gone" && snapshot 0 rollback "$mnt" before --keep-as in-gone && ! ls "$mnt/gone" 2>/dev/null && touch x 2>/dev/null) &&
  fail "a file can be made in a directory that is gone"
(cd "$mnt/tree/deep" && snapshot 0 rollback "$mnt" after --keep-as in-deep && [[ -d file-1 ]]) || fail "wrong directory"
same_trees "$work/after/" "$mnt/"

step "a program that has a file open"
exec 3<"$mnt/later"
snapshot 1 rollback "$mnt" before --keep-as never
says "has inode .* open"
exec 3<&-
snapshot 0 list "$mnt" --no-sizes
holds '[.snapshots[].name] | index("never") == null'
snapshot 1 rollback "$mnt" missing
says "no snapshot named"
snapshot 1 rollback "$mnt" before --keep-as after
says "another snapshot"
same_trees "$work/after/" "$mnt/"
snapshot 0 rollback "$mnt" before --keep-as idle
same_trees "$work/before/" "$mnt/"

step "programs that read and write meanwhile"
touch "$work/go"
for worker in 1 2; do
  (
    while [[ -e $work/go ]]; do
      find "$mnt/tree" -printf '%p %s\n' >/dev/null 2>&1 || true
      echo "$worker" >"$mnt/worker-$worker" 2>/dev/null || true
      mv "$mnt/worker-$worker" "$mnt/tree/worker" 2>/dev/null || true
      cat "$mnt/tree/small" >/dev/null 2>&1 || true
      readlink "$mnt/tree/dangling" >/dev/null 2>&1 || true
    done
  ) &
done
done=0
for attempt in $(seq 100); do
  target=$([[ $((done % 2)) == 0 ]] && echo after || echo before)
  if "$siltfs" snapshot rollback "$mnt" "$target" --keep-as "busy-$attempt" >/dev/null 2>"$work/err"; then
    ((done += 1))
  else
    grep -Eq "has inode|is running" "$work/err" || fail "$(cat "$work/err")"
  fi
  ((done < 10)) || break
done
rm "$work/go"
wait
((done == 10)) || fail "only $done rollbacks were done"
snapshot 0 rollback "$mnt" after --keep-as last
same_trees "$work/after/" "$mnt/"
snapshot 0 rollback "$mnt" before --keep-as very-last
same_trees "$work/before/" "$mnt/"
unmount_and_check
mount_it
same_trees "$work/before/" "$mnt/"
unmount_and_check
