#!/bin/bash
# Tests `siltfs du` and `siltfs find-duplicates` with the real program: exact bytes, and that the
# removal of the paths and a collection free exactly the exclusive bytes.
#
#   du_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/command_checks.sh
source "$(dirname "$0")/command_checks.sh"
# shellcheck source=tests/posix/other_user.sh
source "$(dirname "$0")/other_user.sh"

figure() { "$siltfs" stat --json "$mnt" | jq -e ".$1"; }
# The first path of the last document: logical, exclusive, shared and snapshot bytes.
bytes() { jq -c '.paths[0] | [.logical_bytes, .exclusive_bytes, .shared_bytes, .snapshot_bytes]' "$work/json"; }
# The same for all paths together.
total() { jq -c '[.logical_bytes, .exclusive_bytes, .shared_bytes, .snapshot_bytes]' "$work/json"; }
# Fails unless du shows these bytes for the paths together.
takes() { # BYTES PATH...
  run_json 0 du "${@:2}"
  [[ $(total) == "$1" ]] || fail "${*:2}: $(total), not $1"
}
remount() {
  unmount_and_check
  mount_it
}
# A collection looks at sealed segments only, and a mount after a crash seals all segments.
collect() {
  "$siltfs" sync "$mnt"
  local daemon
  daemon=$(figure pid)
  kill -KILL "$daemon"
  tail --pid "$daemon" -f /dev/null
  "$siltfs" umount "$mnt"
  mount_it
  "$siltfs" gc --json "$mnt" >"$work/collected"
}

step "exact bytes of files, copies, links and snapshots"
make_and_mount
mkdir "$mnt/keep" "$mnt/a" "$mnt/a/sub"
noise 3000000 base >"$mnt/keep/base"
noise 700000 linked >"$mnt/keep/linked"
remount
noise 2000000 own >"$mnt/a/own"
cp "$mnt/keep/base" "$mnt/a/copy"
ln "$mnt/keep/linked" "$mnt/a/linked"
noise 500000 twice >"$mnt/a/sub/twice-1"
cp "$mnt/a/sub/twice-1" "$mnt/a/twice-2"
noise 400000 old >"$mnt/a/sub/old"
"$siltfs" snapshot create "$mnt" s >/dev/null
noise 300000 new >"$mnt/a/sub/new"
takes '[2000000,0,2000000,2000000]' "$mnt/a/own"
takes '[300000,300000,0,0]' "$mnt/a/sub/new"
"$siltfs" snapshot delete "$mnt" s
takes '[2000000,2000000,0,0]' "$mnt/a/own"
takes '[3000000,0,3000000,0]' "$mnt/a/copy"
takes '[700000,0,700000,0]' "$mnt/a/linked"
takes '[500000,0,500000,0]' "$mnt/a/sub/twice-1"
takes '[1000000,500000,0,0]' "$mnt/a/sub/twice-1" "$mnt/a/twice-2"
holds '.shared_among_bytes == 500000 and (.paths | length) == 2'
takes '[1200000,700000,500000,0]' "$mnt/a/sub"
takes '[7400000,3200000,3700000,0]' "$mnt/a"
holds '.files == 7 and .directories == 2 and .path == .paths[0].path and .left_out == 0'
holds ".store == \"$store\" and .seconds >= 0 and .pending_bytes == 0 and .recipe_bytes > 0"
holds '.exclusive_stored_bytes > 3000000 and .exclusive_stored_bytes < 3400000'
takes '[10400000,6900000,0,0]' "$mnt/keep" "$mnt/a"
holds '.shared_among_bytes == 3700000'

step "directories below a path, in the order of their names"
mkdir "$mnt/a/sub/deep" "$mnt/a/other"
noise 100000 deep >"$mnt/a/sub/deep/file"
run_json 0 du -d 1 "$mnt/a/"
[[ $(jq -c '[.paths[] | [.path, .exclusive_bytes]]' "$work/json") == "[[\"$mnt/a/\",3300000],[\"$mnt/a/other\",0],[\"$mnt/a/sub\",800000]]" ]] ||
  fail "$(cat "$work/json")"
run_json 0 du --max-depth 9 "$mnt/a"
[[ $(jq -r '.paths[].path' "$work/json" | tr '\n' ' ') == "$mnt/a $mnt/a/other $mnt/a/sub $mnt/a/sub/deep " ]] || fail "$(cat "$work/json")"
(cd "$mnt/a" && run_json 0 du . sub/../sub sub/deep/file && holds '.exclusive_bytes == 3300000')
holds '.paths[1].exclusive_bytes == 800000 and .paths[2].logical_bytes == 100000'
ln -s own "$mnt/a/symlink"
takes '[0,0,0,0]' "$mnt/a/symlink"
run_json 0 du "$mnt"
holds '.paths[0].directories == 6 and .shared_bytes == 0'
"$siltfs" du "$mnt/a" "$mnt/keep" >"$work/out"
[[ $(wc -l <"$work/out") == 4 ]] || fail "$(cat "$work/out")"
grep -q '^ *7.2 MiB  *3.1 MiB .* 3.5 MiB  /' "$work/out" || fail "$(cat "$work/out")"
"$siltfs" du -b "$mnt/a" | grep -q '^ *7500000  *3300000 .* 3700000  /' || fail "$("$siltfs" du -b "$mnt/a")"

step "a removal and a collection free exactly the exclusive bytes"
collect
# With dead chunks, the statistics would be estimates.
[[ $(jq .dead_chunks "$work/collected") == 0 ]] || fail "there are dead chunks: $(cat "$work/collected")"
run_json 0 du "$mnt/a" "$mnt/keep/linked"
promised=$(jq .exclusive_bytes "$work/json")
[[ $promised == 4000000 ]] || fail "du promises $promised"
before=$(figure unique_bytes)
rm -r "$mnt/a" "$mnt/keep/linked"
collect
collect
[[ $(jq .dead_chunks "$work/collected") == 0 ]] || fail "dead chunks are left: $(cat "$work/collected")"
freed=$((before - $(figure unique_bytes)))
[[ $freed == "$promised" ]] || fail "$freed bytes were freed, not $promised"
cmp "$mnt/keep/base" <(noise 3000000 base) || fail "the other file has changed"
takes '[3000000,3000000,0,0]' "$mnt/keep"

step "data that the kernel has not written back counts"
exec 3>"$mnt/open"
noise 100000 open >&3
run_json 0 du "$mnt/open"
holds '.logical_bytes == 100000 and .pending_bytes + .exclusive_bytes == 100000'
exec 3>&-
rm "$mnt/open"

step "duplicates, those that save most first"
mkdir "$mnt/d" "$mnt/d/sub"
for i in 1 2 3; do noise 200000 small >"$mnt/d/sub/small-$i"; done
noise 900000 large >"$mnt/d/large-1"
cp "$mnt/d/large-1" "$mnt/d/sub/large-2"
ln "$mnt/d/large-1" "$mnt/d/link"
noise 899999 large >"$mnt/d/shorter"
run_json 0 find-duplicates "$mnt/d"
holds '.files == 6 and .groups_found == 2 and .copies_found == 5 and .saved_bytes == 1300000 and .files_busy == 0'
[[ $(jq -c '[.groups[] | [.size, .copies, .saved_bytes, .files_not_listed]]' "$work/json") == '[[900000,2,900000,0],[200000,3,400000,0]]' ]] || fail "$(cat "$work/json")"
[[ $(jq -c '[.groups[].files[]]' "$work/json") == "[\"$mnt/d/large-1\",\"$mnt/d/sub/large-2\",\"$mnt/d/sub/small-1\",\"$mnt/d/sub/small-2\",\"$mnt/d/sub/small-3\"]" ]] ||
  fail "$(cat "$work/json")"
run_json 0 find-duplicates --limit 1 --min-size 200K "$mnt/d"
holds '(.groups | length) == 1 and .groups_found == 1 and .files == 3'
run_json 0 find-duplicates --partial "$mnt/d"
holds '(.pairs | length) == 1 and .pairs[0].sizes == [900000, 899999]'
holds '.pairs[0].shared_bytes > 800000 and .pairs[0].shared_bytes < 899999'
holds ".pairs[0].files == [\"$mnt/d/large-1\", \"$mnt/d/shorter\"]"
"$siltfs" find-duplicates "$mnt/d" >"$work/out"
[[ $(wc -l <"$work/out") == 8 ]] || fail "$(cat "$work/out")"
grep -q '^878.9 KiB saved: 2 files of 878.9 KiB$' "$work/out" || fail "$(cat "$work/out")"

step "what is not possible is refused with one sentence"
run_json 10 du "$work"
says "is not in a mounted siltfs file system"
run_json 10 du "$store"
run_json 1 du "$mnt/missing"
says "there is no such file"
run_json 2 du
run_json 2 du -s -d 1 "$mnt"
run_json 2 du -d -1 "$mnt"
run_json 2 find-duplicates --min-size x "$mnt"
run_json 2 find-duplicates --limit 0 "$mnt"
"$siltfs" snapshot create "$mnt" kept >/dev/null
run_json 1 du "$mnt/.snapshots/kept/d"
says "in a snapshot"
run_json 1 find-duplicates "$mnt/.snapshots"
mkdir "$work/other-mnt"
"$siltfs" mount "$store" "$work/other-mnt" -o snapshot=kept
run_json 1 du "$work/other-mnt/d"
says "in a snapshot"
run_json 1 du "$mnt/d" "$work/other-mnt/d"
says "is not in the same mounted store"
"$siltfs" umount "$work/other-mnt"
code=0
as_nobody "$siltfs" du "$mnt/d" >"$work/out" 2>"$work/err" || code=$?
((code == 1)) || fail "another user: $code"
says "only the superuser"

step "an interruption ends the commands, and leaves nothing"
mkdir "$mnt/many"
for i in $(seq 200); do echo "$i" >"$mnt/many/$i"; done
for i in $(seq 7); do "$siltfs" clone "$mnt/many" "$mnt/many-$i" >"$work/out" && mv "$mnt/many-$i" "$mnt/many/$i-copies"; done
for command in du find-duplicates; do
  interrupted=0
  # The time until the command has begun, and its duration, differ from machine to machine.
  for milliseconds in $(seq 2 2 300); do
    ((interrupted < 3)) || break
    delay=$(printf '0.%03d' "$milliseconds")
    code=0
    env --default-signal=INT timeout --preserve-status --signal=INT "$delay" "$siltfs" "$command" "$mnt" >"$work/out" 2>"$work/err" || code=$?
    case $code in
      0) ;;
      130) interrupted=$((interrupted + 1)) ;;
      *) fail "$command ends with $code: $(cat "$work/err")" ;;
    esac
  done
  ((interrupted > 0)) || fail "$command was never interrupted"
done
[[ ! -e $store/sort-paths ]] || fail "files of a sort are left"

step "a read-only mount"
unmount_and_check
mount_it ro
takes '[3000000,0,3000000,3000000]' "$mnt/keep"
unmount_and_check
