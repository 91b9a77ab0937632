#!/bin/bash
# Exports trees with the real program: what is kept, what is left alone, and what an interruption
# leaves.
#
#   export_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

out=$work/out
figure() { jq -e ".$1" "$work/json"; }
holds() { [[ $(jq -n "$1") == true ]] || fail "not so: $1: $(cat "$work/json")"; }
# Exports with the arguments; the exit code must be CODE.
export_it() { # CODE ARGUMENT...
  local code=0 wanted=$1
  shift
  timeout 120 "$siltfs" export --json "$@" >"$work/json" 2>"$work/err" || code=$?
  ((code == wanted)) || fail "export $* ends with $code: $(cat "$work/err")"
}
no_temporary_files() { ! find "$out" -name '.siltfs-export-*' | grep -q . || fail "a temporary name is left"; }

step "everything is kept"
make_and_mount
make_source
for i in 1 2 3; do noise 2M shared >"$src/other/copy-$i"; done
"$siltfs" import "$src/tree" "$src/other" "$mnt" >/dev/null
export_it 0 --verify "$mnt" "$out"
same_trees "$src/tree" "$src/other" "$out/"
holds "$(figure errors) == 0 and $(figure files_unchanged) == 0"
holds "$(figure bytes_new) - $(figure bytes_read) > 3900000" # shared chunks are read once
no_temporary_files

step "the target gets the source's attributes, although links and nodes are put into it"
export_it 0 "$mnt/tree" "$work/tree-alone"
same_trees "$src/tree/" "$work/tree-alone/"
rm -r "$work/tree-alone"

step "a second run leaves files alone, and replaces what differs"
export_it 0 "$mnt" "$out"
holds "$(figure bytes_new) == 0"
echo longer than before >>"$out/tree/deep/file-11"
rm "$out/tree/link" "$out/tree/deep/file-12"
ln -s elsewhere "$out/tree/link"
mkdir "$out/more"
setfattr -n security.label -v local "$out/tree/deep" # as a security module does
setfattr -n user.other -v x "$out/tree/deep"
export_it 0 "$mnt" "$out"
getfattr -n security.label "$out/tree/deep" >"$work/label" 2>&1 || fail "a label is removed"
setfattr -x security.label "$out/tree/deep"
same_trees "$src/tree" "$src/other" "$out/"

step "data that the kernel still holds are exported"
echo written now >"$mnt/fresh"
exec 5>>"$mnt/open"
noise 300K open >&5
export_it 0 "$mnt" "$out"
cmp "$mnt/fresh" "$out/fresh"
cmp <(noise 300K open) "$out/open"
exec 5>&-

step "after a settle, a garbage collection and a new mount, chunks lie elsewhere"
"$siltfs" settle "$mnt" >/dev/null
rm "$mnt/tree/deep/large" "$mnt/tree/large-again"
"$siltfs" gc "$mnt" >/dev/null
"$siltfs" umount "$mnt"
mount_it ro
rm -rf "$out"
export_it 0 --verify "$mnt" "$out"
rsync -aHAXc --delete --dry-run -i --exclude large --exclude large-again "$src/tree" "$out/" >"$work/differences"
grep -v '^.d..t' "$work/differences" && fail "the trees differ"
"$siltfs" umount "$mnt"

step "what cannot be done is listed"
mount_it
export_it 1 "$mnt/missing" "$out"
export_it 10 "$work" "$out"
export_it 1 "$mnt" "$work/no/parent"
export_it 1 "$mnt/tree" "$mnt/tree/deep" # into itself
export_it 1 "$mnt/tree" "$mnt/new/"
grep -q 'mounted store' "$work/err" || fail "another cause: $(cat "$work/err")"
[[ ! -e $mnt/new ]] || fail "a refused target is made"
rm "$out/tree/nothing"
mkdir "$out/tree/nothing" # a file cannot replace a directory
export_it 3 "$mnt" "$out"
holds "$(figure errors) == 1"
jq -e '.error_list[0].path' "$work/json" | grep -q nothing || fail "the error does not name the file"
rm -r "$out"

step "a second export keeps access lists, also on XFS, which shows them as two attributes"
truncate -s 320M "$work/xfs-image"
mkfs.xfs -q "$work/xfs-image"
mkdir "$mnt/lists" "$work/xfs"
mount -o loop "$work/xfs-image" "$work/xfs"
setfacl -m u:1000:rwx,d:u:1000:rwx "$mnt/lists"
for _ in 1 2; do
  export_it 0 "$mnt/lists" "$work/xfs/out"
  diff <(cd "$mnt/lists" && getfacl .) <(cd "$work/xfs/out" && getfacl .) || fail "another list"
done
umount "$work/xfs"
rm "$work/xfs-image"

step "an error of one file does not end the export"
mkdir "$mnt/owners"
for i in $(seq 20); do echo "file $i" >"$mnt/owners/file-$i"; done
chown 1234 "$mnt/owners/file-5" # no user of the namespace, which is EINVAL
ln "$mnt/owners/file-5" "$mnt/owners/link-to-5"
mkdir "$out"
echo old | tee "$out/file-5" >"$out/link-to-5"
code=0
unshare --user --map-root-user "$siltfs" export --json "$mnt/owners" "$out" >"$work/json" || code=$?
((code == 3)) || fail "it ends with $code"
holds "$(figure errors) == 2 and $(figure files) == 19"
[[ ! $out/file-5 -ef $out/link-to-5 ]] || fail "a link to an old file"
no_temporary_files
rm -r "$out"

step "few open files are enough"
for i in $(seq 21 300); do echo "file $i" >"$mnt/owners/file-$i"; done
# For a new file the kernel may show a time that is some milliseconds before the time in the store,
# until the file's times are set.
touch "$mnt"/owners/*
(ulimit -n 80 && export_it 0 --verify "$mnt/owners" "$out")
same_trees "$mnt/owners/" "$out/"
rm -r "$out"

step "a file of many tiny chunks, each shorter than the place that names it"
mkdir "$mnt/tiny"
python3 - "$mnt/tiny/file" <<'END'
import mmap, os, sys
# Direct writes, because the kernel would write whole pages.
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
for i in range(30000):
    page[0:8] = b"%08x" % i
    os.pwrite(file, memoryview(page)[0:8], i * 8192)
END
"$siltfs" sync "$mnt"
export_it 0 --verify "$mnt/tiny" "$out"
cmp "$mnt/tiny/file" "$out/file"
holds "$(figure bytes_new) < 1000000"
rm -r "$out" "$mnt/tiny"

step "a killed client leaves whole files, and the next run continues"
mkdir "$src/many"
for i in $(seq 40); do noise 2M "many $i" >"$src/many/large-$i"; done
"$siltfs" import "$src/many" "$mnt" >/dev/null
for enough in 1 10 30; do
  "$siltfs" export "$mnt" "$out" >/dev/null 2>&1 &
  client=$!
  until (($(find "$out/many" -name 'large-*' 2>/dev/null | wc -l) >= enough)); do
    kill -0 $client 2>/dev/null || break
  done
  kill -KILL $client 2>/dev/null || true
  wait $client 2>/dev/null || true
  for file in "$out"/many/large-*; do
    [[ ! -e $file ]] || cmp "$file" "$src/many/${file##*/}" || fail "a part of a file has a name"
  done
done
export_it 0 "$mnt" "$out"
same_trees "$src/many" "$out/"
no_temporary_files

step "an unmount ends an export"
rm -r "$out"
"$siltfs" export "$mnt" "$out" >/dev/null 2>"$work/err" &
client=$!
until [[ -e $out/many ]]; do kill -0 $client 2>/dev/null || break; done
unmount_and_check
code=0
wait $client || code=$?
((code == 0 || code == 1)) || fail "it ends with $code"
((code == 0)) || [[ $(wc -l <"$work/err") == 1 ]] || fail "not one sentence: $(cat "$work/err")"
no_temporary_files
