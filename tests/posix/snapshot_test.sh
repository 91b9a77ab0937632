#!/bin/bash
# Snapshots with the real program: what they keep, how programs see them, and what the commands say.
#
#   snapshot_test.sh SILTFS
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
all=$mnt/.snapshots

step "everything is kept"
make_and_mount
make_source
cp -a "$src/." "$mnt/"
! stat "$all/one" 2>/dev/null || fail "there is a snapshot already" # the kernel remembers that
snapshot 0 create "$mnt" one
holds '.name == "one" and .number == 1 and (.time | test("^20..-..-..T..:..:..Z$"))'
holds ".files == $(find "$src" ! -type d -printf '%i\n' | sort -u | wc -l)"
same_trees "$src/" "$all/one/"
echo more >>"$mnt/tree/deep/large"
rm -r "$mnt/other"
mkdir "$mnt/new"
same_trees "$src/" "$all/one/"
snapshot 0 create "$mnt" two
[[ -e $all/two/new && ! -e $all/two/other && ! -e $all/one/new ]] || fail "two is wrong"
[[ $(ls "$all") == $'one\ntwo' ]] || fail "the listing is $(ls "$all")"
[[ -z $(find "$mnt" -maxdepth 1 -name .snapshots) ]] || fail "the directory is not hidden"

step "data that no program has synced is in the snapshot"
exec 3>"$mnt/open"
noise 300K open >&3
snapshot 0 create "$mnt" open
noise 5000 tail >&3
exec 3>&-
cmp <(noise 300K open) "$all/open/open"

step "numbers of inodes are stable and distinct"
inodes=$(find "$mnt" "$all/one" "$all/two" -printf '%i\n' | sort | uniq -d | wc -l)
links=$(find "$mnt" "$all/one" "$all/two" ! -type d -links +1 -printf '%i\n' | sort -u | wc -l)
((inodes == links)) || fail "$inodes inodes with several names, but $links with several links"
find "$all/one" -printf '%i %P\n' >"$work/inodes"

step "snapshots cannot be changed"
for attempt in "touch $all/one/x" "rm -f $all/one/tree/deep/large" "mkdir $all/x" "rmdir $all/one" \
  "chmod 700 $all/one" "mv $all/one $mnt/x" "ln $all/one/tree/deep/large $mnt/x" \
  "truncate -s 1 $all/one/tree/deep/large" "setfattr -n user.x -v 1 $all/one"; do
  ! $attempt 2>"$work/err" || fail "it is possible: $attempt"
  grep -q "Read-only file system" "$work/err" || fail "$attempt: $(cat "$work/err")"
done
# The kernel would keep written bytes in its cache.
for mode in O_WRONLY O_RDWR 'O_WRONLY | os.O_APPEND'; do
  python3 -c "import os; os.open('$all/one/tree/deep/large', os.$mode)" 2>"$work/err" &&
    fail "a file of a snapshot can be opened with $mode"
  grep -q "Read-only file system" "$work/err" || fail "$mode: $(cat "$work/err")"
done
mkdir "$work/odd"
ln -s nothing "$work/odd/.snapshots"
code=0
"$siltfs" import "$work/odd/" "$mnt" >"$work/out" 2>"$work/err" || code=$?
((code == 3)) || fail "an import of .snapshots ends with $code: $(cat "$work/err")"
! mkdir "$all" 2>/dev/null || fail "a second directory of snapshots was made"

step "snapshots survive an unmount"
unmount_and_check
snapshot 0 list "$store"
holds '[.snapshots[].name] == ["one", "two", "open"]'
mount_it
same_trees "$src/" "$all/one/"
find "$all/one" -printf '%i %P\n' | cmp - "$work/inodes"

step "programs copy out of a snapshot"
rsync -aHAX "$all/one/" "$mnt/copy/"
same_trees "$src/" "$mnt/copy/"
timeout 120 "$siltfs" clone "$all/one/tree" "$mnt/clone"
same_trees "$src/tree/" "$mnt/clone/"
timeout 120 "$siltfs" export "$all/one" "$work/exported"
same_trees "$src/tree/" "$work/exported/tree/"

step "rename and delete are seen at once"
ls "$all/one" >/dev/null
snapshot 0 rename "$mnt" one uno
[[ ! -e $all/one && -e $all/uno/tree ]] || fail "the old name is still there"
snapshot 1 rename "$mnt" uno two
says "another snapshot has this name"
snapshot 1 show "$mnt" one
says "no snapshot named"
exec 4<"$all/two/tree/deep/large"
snapshot 1 delete "$mnt" two missing
says "no snapshot named"
snapshot 0 delete "$mnt" two open two
[[ $(ls "$all") == uno ]] || fail "the listing is $(ls "$all")"
exec 4<&-
snapshot 2 create "$mnt"
snapshot 2 create "$mnt" a/b
says "cannot be the name"
snapshot 2 create "$mnt" $'\xff'
says "must be UTF-8"
snapshot 10 list "$work"

step "new and freed bytes"
snapshot 0 create "$mnt" before
noise 2M only >"$mnt/only"
snapshot 0 create "$mnt" with
snapshot 0 show "$mnt" with
holds '.new_bytes >= 2097152 and .new_bytes < 2200000 and .freed_bytes == 0'
rm "$mnt/only"
"$siltfs" gc "$mnt" >/dev/null # waits until the kernel has forgotten the file
snapshot 0 show "$mnt" with
holds '.freed_bytes == .new_bytes and .new_bytes >= 2097152'
freed=$(jq .freed_bytes "$work/json")
snapshot 0 list "$mnt"
holds '[.snapshots[] | has("new_bytes") and has("freed_bytes")] | all'
holds '[.snapshots[] | select(.name == "with") | .freed_bytes] == ['"$freed"']'
"$siltfs" snapshot list "$mnt" >"$work/out"
grep -Eq ' new +2\.0 MiB  frees +2\.0 MiB  commit [0-9]+ +with$' "$work/out" || fail "$(cat "$work/out")"
cp "$work/json" "$work/mounted"
snapshot 0 list "$mnt" --no-sizes
holds '[.snapshots[] | has("new_bytes") or has("freed_bytes")] | any | not'
! "$siltfs" snapshot list --no-sizes "$mnt" | grep -q frees || fail "there are sizes"
unmount_and_check
snapshot 0 list "$store"
[[ $(jq -S .snapshots "$work/json") == "$(jq -S .snapshots "$work/mounted")" ]] || fail "the unmounted store has other sizes"
[[ ! -e $store/sort ]] || fail "files for sorting are left"
mount_it
snapshot 0 delete "$mnt" before with

step "prune"
for n in 1 2 3; do snapshot 0 create "$mnt" "n$n"; done
snapshot 2 prune "$mnt"
says "at least one rule"
snapshot 2 prune "$mnt" --keep-last -1
snapshot 0 prune "$mnt" --keep-last 2 --dry-run
holds '[.deleted[].name] == ["uno", "n1"] and .dry_run'
snapshot 0 list "$mnt"
holds '.snapshots | length == 4'
snapshot 0 prune "$mnt" --keep-last 2 --keep-yearly 1
holds '[.kept[].name] == ["n2", "n3"] and .kept[1].reasons == ["last", "yearly"]'
[[ $(ls "$all") == $'n2\nn3' ]] || fail "the listing is $(ls "$all")"

step "other forms of a mount"
unmount_and_check
mount_it snapdir=visible
[[ -n $(find "$mnt" -maxdepth 1 -name .snapshots) ]] || fail "the directory is not visible"
unmount_and_check
mount_it snapdir=off
[[ ! -e $all ]] || fail "the directory is there"
unmount_and_check
mount_it snapshot=n2
[[ -e $mnt/copy/tree && ! -e $all ]] || fail "the mount is not that of the snapshot"
! touch "$mnt/x" 2>/dev/null || fail "a mounted snapshot can be changed"
unmount_and_check
! "$siltfs" mount "$store" "$mnt" -o snapshot=missing 2>"$work/err" || fail "a missing one is mounted"
says "no snapshot named"
! "$siltfs" mount "$store" "$mnt" -o snapdir=maybe 2>"$work/err" || fail "snapdir=maybe is accepted"

step "an unmounted store"
snapshot 0 create "$store" offline
snapshot 0 delete "$store" n2 n3
snapshot 0 list "$store"
holds '[.snapshots[].name] == ["offline"]'

step "differences between snapshots"
rm -r "$store"
make_and_mount
mkdir -p "$mnt/d/sub"
noise 20K a >"$mnt/d/changed"
noise 20K b >"$mnt/d/sub/kept"
echo 1 >"$mnt/gone"
echo 1 >"$mnt/mode"
echo 1 >"$mnt/moved"
snapshot 0 create "$mnt" a
noise 5K more >>"$mnt/d/changed"
rm "$mnt/gone"
chmod 600 "$mnt/mode"
mv "$mnt/moved" "$mnt/d/sub/new name"
mkdir "$mnt/added"
printf x >"$mnt/added/"$'not utf-8 \xff'
"$siltfs" snapshot diff "$mnt" a | sort >"$work/out"
sort >"$work/wanted" <<'EOF'
+   /added/
+   /added/not utf-8 \xff
-   /gone
M   /d/changed
R   /moved -> /d/sub/new name
U   /mode
EOF
diff "$work/wanted" "$work/out" || fail "the differences are wrong"
snapshot 0 diff "$mnt" a
holds '.from == "a" and .to == null and .changed == ["/d/changed", "/mode"] and .deleted == ["/gone"]'
holds '.renamed == [{"from": "/moved", "to": "/d/sub/new name"}] and .metadata_only == ["/mode"]'
snapshot 0 create "$mnt" b
echo later >"$mnt/later"
snapshot 0 diff "$mnt" b a
holds '.created == ["/gone"] and (.deleted | length == 2) and .renamed[0].to == "/moved"'
snapshot 1 diff "$mnt" a missing
says "no snapshot named"
unmount_and_check
"$siltfs" snapshot diff "$store" a b | sort | diff "$work/wanted" - || fail "they differ unmounted"

step "a rollback"
snapshot 0 rollback "$store" a --keep-as kept
holds '.kept.name == "kept" and .snapshot == "a"'
mount_it
same_trees "$all/a/" "$mnt/"
[[ -e $all/kept/later && ! -e $mnt/later && ! -e $mnt/added ]] || fail "the files are wrong"
[[ -z $("$siltfs" snapshot diff "$mnt" a) ]] || fail "the files differ from those of a"
echo new >"$mnt/after"
unmount_and_check
snapshot 0 rollback "$store" kept
snapshot 0 list "$store"
holds '.snapshots[3].name | test("^before-rollback-20..-")'
mount_it
[[ -e $mnt/later && -e $mnt/added && ! -e $mnt/after ]] || fail "the second rollback is wrong"
unmount_and_check
