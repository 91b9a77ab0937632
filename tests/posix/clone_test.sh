#!/bin/bash
# Clones trees with the real program: what is kept, what programs and the kernel see, what is
# refused, and what an interruption leaves.
#
#   clone_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/command_checks.sh
source "$(dirname "$0")/command_checks.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

# The exit code must be CODE.
clone() { run_json "$1" clone "${@:2}"; } # CODE ARGUMENT...
# The statistics that a clone changes.
counts() { "$siltfs" stat --json "$mnt" | jq -c '[.files, .directories, .logical_bytes]'; }

step "everything is kept"
make_and_mount
make_source
"$siltfs" import "$src/tree" "$src/other" "$mnt/a" >"$work/out"
ls -R "$mnt" >"$work/listed" # the kernel now knows that there is no b
! stat "$mnt/b" 2>/dev/null || fail "b is there already"
"$siltfs" sync "$mnt"
before=$("$siltfs" stat --json "$mnt" | jq .chunks_unique)
clone 0 "$mnt/a" "$mnt/b"
same_trees "$src/tree" "$src/other" "$mnt/b/"
same_trees "$mnt/a/" "$mnt/b/"
(($("$siltfs" stat --json "$mnt" | jq .chunks_unique) == before)) || fail "chunks were stored"
holds ".files == $(find "$mnt/a" ! -type d -printf '%i\n' | sort -u | wc -l)"
holds ".directories == $(find "$mnt/a" -type d | wc -l)"
holds ".store == \"$store\" and .logical_bytes > 3000000 and .seconds >= 0"
[[ $(stat -c %b "$mnt/b/tree/hole") == 0 ]] || fail "a hole takes space"
[[ $(stat -c %h "$mnt") == 4 ]] || fail "the directory has $(stat -c %h "$mnt") links"
find "$mnt/a" -printf '%P\n' >"$work/order-a"
find "$mnt/b" -printf '%P\n' >"$work/order-b"
cmp "$work/order-a" "$work/order-b" || fail "the order of the entries differs"

step "writes that no program has synced are in the clone"
exec 3>"$mnt/a/open"
noise 300K open >&3
noise 5000 tail >&3
clone 0 "$mnt/a/open" "$mnt/open-clone"
exec 3>&-
cmp "$mnt/a/open" "$mnt/open-clone"

step "source and clone change by themselves"
echo more >>"$mnt/b/tree/deep/large"
cmp "$src/tree/deep/large" "$mnt/a/tree/deep/large"
rm -r "$mnt/a/tree"
cmp "$src/tree/deep/deeper/middle" "$mnt/b/tree/deep/deeper/middle"
clone 0 "$mnt/b" "$mnt/c/" # a slash at the end is allowed
rm -r "$mnt/b"
"$siltfs" gc "$mnt" >"$work/out"
cmp "$src/tree/deep/deeper/middle" "$mnt/c/tree/deep/deeper/middle"
clone 0 "$mnt/c/tree/deep/file-9" "$mnt/c/file"
cmp "$src/tree/deep/file-9" "$mnt/c/file"
clone 0 "$mnt/c/tree/link" "$mnt/c/link"
[[ $(readlink "$mnt/c/link") == small ]] || fail "the link leads to $(readlink "$mnt/c/link")"

step "an imported clone is left alone by the next import"
rm -r "$mnt/c"
"$siltfs" import "$src/tree" "$mnt/first" >"$work/out"
clone 0 "$mnt/first" "$mnt/second"
"$siltfs" import --json "$src/tree" "$mnt/second" >"$work/json"
holds '.files == .files_unchanged and .bytes_read == 0'
rm -r "$mnt/first"

step "what is not possible is refused with one sentence"
mkdir "$work/elsewhere"
before=$(counts)
clone 1 "$mnt/second" "$mnt/open-clone"
says "the name is taken"
clone 10 "$mnt/second" "$mnt"
clone 2 "$mnt/second" "$mnt/second/tree/in"
says "cannot be cloned into itself"
clone 2 "$mnt" "$mnt/in"
clone 1 "$work/elsewhere" "$mnt/in"
says "is not in the same mounted file system"
clone 10 "$mnt/second" "$work/elsewhere/in"
says "is not in a mounted siltfs file system"
clone 1 "$mnt/second" "$mnt/missing/in"
clone 1 "$mnt/missing" "$mnt/in"
says "there is no such file"
clone 2 "$mnt/second"
[[ $(counts) == "$before" ]] || fail "a refused clone has changed the counts"
mkdir "$work/other-mnt"
"$siltfs" mkfs "$disk/other"
"$siltfs" mount "$disk/other" "$work/other-mnt"
clone 1 "$mnt/second" "$work/other-mnt/in"
says "is not in the same mounted file system"
"$siltfs" umount "$work/other-mnt"

step "an interrupted clone leaves nothing"
mkdir "$mnt/many"
for i in $(seq 3); do
  clone 0 "$mnt/second" "$mnt/many/copy-$i"
done
for i in $(seq 5); do
  clone 0 "$mnt/many" "$mnt/more"
  mv "$mnt/more" "$mnt/many/more-$i"
done
before=$(counts)
interrupted=0
for delay in 0.02 0.05 0.1 0.15 0.2 0.3; do
  code=0
  env --default-signal=INT timeout --signal=INT "$delay" "$siltfs" clone "$mnt/many" "$mnt/stopped" >"$work/out" 2>"$work/err" || code=$?
  if [[ -e $mnt/stopped ]]; then
    rm -r "$mnt/stopped"
  else
    interrupted=$((interrupted + 1))
    [[ $(counts) == "$before" ]] || fail "an interrupted clone has changed the counts"
  fi
done
((interrupted > 0)) || fail "no clone was interrupted"

step "a killed daemon leaves nothing, or all"
"$siltfs" clone "$mnt/many" "$mnt/stopped" >"$work/out" 2>"$work/err" &
command=$!
sleep 0.1
kill -KILL "$("$siltfs" stat --json "$mnt" | jq .pid)" 2>/dev/null || true
wait "$command" || true
"$siltfs" umount "$mnt" >"$work/out" 2>&1 || true
"$siltfs" fsck -n "$store" >"$work/fsck" || fail "$(cat "$work/fsck")"
mount_it
if [[ -e $mnt/stopped ]]; then same_trees "$mnt/many/" "$mnt/stopped/"; fi

step "a read-only mount refuses"
unmount_and_check
mount_it ro
clone 1 "$mnt/second" "$mnt/in"
says "read-only"
unmount_and_check
