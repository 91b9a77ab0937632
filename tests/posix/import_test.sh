#!/bin/bash
# Imports trees with the real program: what is kept, what is left alone, what the kernel sees, what
# other users may do, and what an interruption leaves.
#
#   import_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

# Prints a number of the last import's JSON document.
figure() { jq -e ".$1" "$work/json"; }
holds() { [[ $(jq -n "$1") == true ]] || fail "not so: $1: $(cat "$work/json")"; }
# Imports with the arguments; the exit code must be CODE.
import() { # CODE ARGUMENT...
  local code=0 wanted=$1
  shift
  timeout 120 "$siltfs" import --json "$@" >"$work/json" 2>"$work/err" || code=$?
  ((code == wanted)) || fail "import $* ends with $code: $(cat "$work/err")"
}
step "everything is kept"
make_and_mount
make_source
import 0 "$src/tree" "$src/other" "$mnt/a"
same_trees "$src/tree" "$src/other" "$mnt/a/"
[[ $(stat -c %h "$mnt/a/tree/small") == 3 ]] || fail "links between two sources are lost"
[[ $(stat -c %b "$mnt/a/tree/hole") == 0 ]] || fail "a hole takes space"
[[ $(stat -c %t,%T "$mnt/a/tree/disk") == 103,fffff ]] || fail "another device: $(stat -c %t,%T "$mnt/a/tree/disk")"
holds "$(figure errors) == 0 and $(figure files) == $(find "$src/tree" "$src/other" ! -type d | tr -dc '\n\0' | wc -l) - 1"
holds "$(figure files_unchanged) == 0 and $(figure bytes_new) > 3000000"
! getfattr -d -m - "$mnt/a/tree/deep/file-9" | grep -q . || fail "the hidden attribute is listed"
for call in "getfattr -n siltfs.source" "setfattr -n siltfs.source -v x" "setfattr -x siltfs.source"; do
  ! $call "$mnt/a/tree/deep/file-9" 2>/dev/null || fail "$call works"
done

step "a slash means the contents, and a single file goes into the directory"
import 0 "$src/tree/" "$mnt/b"
same_trees "$src/tree/" "$mnt/b/"
import 0 "$src/tree/small" "$mnt/b/empty"
cmp "$src/tree/small" "$mnt/b/empty/small"
import 1 "$src/tree" "$mnt/no/parent"
import 10 "$src/tree" "$work"

step "a second run leaves everything alone"
import 0 "$src/tree" "$src/other" "$mnt/a"
holds "$(figure files_unchanged) == $(figure files) and $(figure bytes_read) == 0"
same_trees "$src/tree" "$src/other" "$mnt/a/"

step "it reads what has changed, in the source or in the store"
echo changed >"$src/tree/deep/file-20"
chmod 600 "$src/tree/deep/file-21"
touch -r "$src/tree/deep/file-23" "$work/time"
echo "FILE 23" >"$src/tree/deep/file-23" # of the same size, with the same mtime
touch -r "$work/time" "$src/tree/deep/file-23"
touch -r "$mnt/a/tree/deep/file-22" "$work/time"
echo "FILE 22" >"$mnt/a/tree/deep/file-22"
touch -r "$work/time" "$mnt/a/tree/deep/file-22"
setfattr -n user.new -v x "$mnt/a/tree/deep/file-24"
import 0 "$src/tree" "$src/other" "$mnt/a"
holds "$(figure files) - $(figure files_unchanged) == 5"
same_trees "$src/tree" "$src/other" "$mnt/a/"

step "--reference shares what has not changed"
chmod 640 "$src/tree/deep/file-30"
import 0 --reference "$mnt/a" "$src/tree" "$src/other" "$mnt/c"
same_trees "$src/tree" "$src/other" "$mnt/c/"
holds "$(figure bytes_read) < 400000"
echo x >>"$mnt/a/tree/deep/file-40" # a changed reference is not used
import 0 --reference "$mnt/a" "$src/tree" "$src/other" "$mnt/d"
same_trees "$src/tree" "$src/other" "$mnt/d/"

step "--checksum finds what has no other trace"
import 0 --checksum "$src/tree" "$src/other" "$mnt/d"
holds "$(figure bytes_read) > 3000000"
same_trees "$src/tree" "$src/other" "$mnt/d/"

step "--exclude, --delete, --dry-run and --one-file-system"
mkdir "$mnt/d/tree/gone" "$mnt/d/tree/deep/kept.o"
touch "$mnt/d/tree/gone/x" "$mnt/d/tree/deep/y" "$mnt/d/unrelated"
find "$mnt/d" -printf '%P %T@ %i\n' | sort >"$work/before"
"$siltfs" import --dry-run --delete --exclude '*.o' "$src/tree" "$mnt/d" >"$work/out"
find "$mnt/d" -printf '%P %T@ %i\n' | sort | cmp - "$work/before" || fail "a dry run has changed something"
grep -q "^remove $src/tree/gone$" "$work/out" || fail "the dry run does not tell what it would remove: $(cat "$work/out")"
touch "$src/tree/deep/new.o" "$src/tree/empty/sub"
import 0 --delete --exclude '*.o' --exclude '/empty/sub' "$src/tree" "$mnt/d"
[[ ! -e $mnt/d/tree/gone && ! -e $mnt/d/tree/deep/y ]] || fail "not deleted"
[[ -e $mnt/d/tree/deep/kept.o && -e $mnt/d/unrelated ]] || fail "too much was deleted"
[[ ! -e $mnt/d/tree/deep/new.o && ! -e $mnt/d/tree/empty/sub ]] || fail "not excluded"
mkdir "$src/tree/mounted"
mount -t tmpfs none "$src/tree/mounted"
touch "$src/tree/mounted/on-tmpfs"
import 0 --one-file-system "$src/tree" "$mnt/d"
[[ -d $mnt/d/tree/mounted && ! -e $mnt/d/tree/mounted/on-tmpfs ]] || fail "crossed into another file system"
umount "$src/tree/mounted"
import 2 --delete "$src/tree/" "$src/other/" "$mnt/d"

step "an entry of another type is replaced"
rm -r "$mnt/d/tree/small" "$mnt/d/tree/link" "$mnt/d/tree/empty"
mkdir "$mnt/d/tree/link"
ln -s nowhere "$mnt/d/tree/small"
touch "$mnt/d/tree/empty"
import 3 "$src/tree" "$src/other" "$mnt/d" # a directory is in the place of the link
holds "$(figure errors) == 1"
import 0 --delete "$src/tree" "$src/other" "$mnt/d"
same_trees "$src/tree" "$src/other" "$mnt/d/"

step "the kernel sees what was imported"
mkdir -p "$mnt/e/tree/deep"
echo old >"$mnt/e/tree/small"
exec 5<"$mnt/e/tree/small"
! stat "$mnt/e/tree/nothing" 2>/dev/null || fail "a file is there already"
ls "$mnt/e/tree" "$mnt/e/tree/deep" "$mnt" >/dev/null
stat "$mnt/e/tree" "$mnt/e/tree/deep" "$mnt/e/tree/small" >/dev/null
import 0 "$src/tree" "$src/other" "$mnt/e"
stat "$mnt/e/tree/nothing" >/dev/null || fail "the kernel still says that there is no such file"
[[ $(ls "$mnt/e/tree") == $(ls "$src/tree") ]] || fail "the kernel lists old names"
[[ $(stat -c %h "$mnt/e/tree") == $(stat -c %h "$src/tree") ]] || fail "the kernel shows an old link count"
cmp "$src/tree/small" "$mnt/e/tree/small" || fail "the kernel shows the old file"
[[ $(cat <&5) == old ]] || fail "an open file lost its content"
[[ $(stat -L -c %h /proc/self/fd/5) == 0 ]] || fail "the replaced file still counts a name"
exec 5<&-
same_trees "$src/tree" "$src/other" "$mnt/e/"
import 0 --delete "$src/other/" "$mnt/e"
[[ $(ls "$mnt/e") == small-elsewhere ]] || fail "the kernel lists removed names"

step "files with several names are imported again, with a reference, and below each other"
mkdir -p "$src/links/below"
echo one >"$src/links/a"
ln "$src/links/a" "$src/links/b"
ln "$src/links/a" "$src/links/below/c"
for target in links links; do
  import 0 "$src/links/" "$mnt/$target"
  same_trees "$src/links/" "$mnt/$target/"
done
import 0 --reference "$mnt/links" "$src/links/" "$mnt/links-again"
same_trees "$src/links/" "$mnt/links-again/"

step "a tree is not imported into itself"
import 3 "$mnt/links/" "$mnt/links/new"
[[ ! -e $mnt/links/new/new ]] || fail "the target was imported into itself"
rm -r "$mnt/links/new"

step "a pattern protects names in directories that the source lacks"
mkdir -p "$mnt/links/gone/sub"
touch "$mnt/links/gone/a.keep" "$mnt/links/gone/b" "$mnt/links/gone/sub/c"
import 0 --delete --exclude '*.keep' "$src/links/" "$mnt/links"
[[ $(cd "$mnt/links" && find gone | sort | tr '\n' ' ') == "gone gone/a.keep " ]] ||
  fail "left: $(find "$mnt/links/gone")"
import 0 --delete "$src/links/" "$mnt/links"
[[ ! -e $mnt/links/gone ]] || fail "the directory is not removed"

step "only ** crosses slashes in a pattern"
mkdir -p "$src/links/s/a/gen" "$src/links/s/a/b/gen"
touch "$src/links/s/a/gen/x" "$src/links/s/a/b/gen/x"
import 0 --exclude 's/*/gen/**' "$src/links/" "$mnt/patterns"
[[ ! -e $mnt/patterns/s/a/gen/x && -e $mnt/patterns/s/a/b/gen/x ]] || fail "$(find "$mnt/patterns")"

step "with a reference, too, a file replaces a directory"
mkdir -p "$mnt/replaced/a/sub"
import 0 --delete --reference "$mnt/links" "$src/links/" "$mnt/replaced"
[[ -f $mnt/replaced/a ]] || fail "the directory is still there"
rm -r "$src/links"

step "what cannot be read is listed"
import 3 "$src/other" "$work/missing" "$mnt/f"
holds "$(figure errors) == 1"
jq -e '.error_list[0].path' "$work/json" | grep -q missing || fail "the error does not name the file"
grep -q missing "$work/err" || fail "the error is not printed"
[[ -e $mnt/f/other/small-elsewhere ]] || fail "the rest is not imported"
import 3 "$work" "$mnt/f" # the mount is below this directory
rm -rf "${mnt:?}/f"
unmount_and_check

step "a read-only mount refuses"
mount_it ro
import 1 "$src/other" "$mnt/g"
grep -q 'read-only' "$work/err" || fail "no clear sentence: $(cat "$work/err")"
"$siltfs" umount "$mnt"

step "a killed client leaves whole files, and the next run continues"
mkdir "$src/many"
for i in $(seq 40); do noise 2M "many $i" >"$src/many/large-$i"; done
mount_it
for enough in 1 5 10 20 30; do
  "$siltfs" import "$src" "$mnt/h" >/dev/null 2>&1 &
  client=$!
  until (($(find "$mnt/h/src/many" -type f 2>/dev/null | wc -l) >= enough)); do
    kill -0 $client 2>/dev/null || break
  done
  kill -KILL $client 2>/dev/null || true
  wait $client 2>/dev/null || true
  if [[ -d $mnt/h/src/many ]]; then
    for file in "$mnt"/h/src/many/*; do
      [[ ! -e $file ]] || cmp "$file" "$src/many/${file##*/}" || fail "a part of a file has a name"
    done
  fi
done
import 0 "$src" "$mnt/h"
same_trees "$src" "$mnt/h/"
env --default-signal=INT "$siltfs" import "$src" "$mnt/i" >/dev/null 2>&1 &
client=$!
until [[ -e $mnt/i/src ]]; do kill -0 $client 2>/dev/null || break; done
kill -INT $client
code=0
wait $client || code=$?
((code == 130 || code == 0)) || fail "interrupted, it ends with $code: $(cat "$work/err")"
unmount_and_check

step "an unmount ends an import"
mount_it
"$siltfs" import "$src" "$mnt/k" >/dev/null 2>"$work/err" &
client=$!
until [[ -e $mnt/k/src ]]; do kill -0 $client 2>/dev/null || break; done
unmount_and_check
code=0
wait $client || code=$?
((code == 0 || code == 1)) || fail "it ends with $code: $(cat "$work/err")"
((code == 0)) || [[ $(wc -l <"$work/err") == 1 ]] || fail "not one sentence: $(cat "$work/err")"

step "a killed daemon ends an import, and the next run continues"
mount_it
"$siltfs" import "$src" "$mnt/l" >/dev/null 2>"$work/err" &
client=$!
until [[ -e $mnt/l/src ]]; do kill -0 $client 2>/dev/null || break; done
kill -KILL "$("$siltfs" stat --json "$store" | jq .pid)"
wait $client || true
"$siltfs" umount "$mnt"
"$siltfs" fsck -n --data "$store" >"$work/fsck" 2>&1 || fail "fsck: $(cat "$work/fsck")"
mount_it
import 0 "$src" "$mnt/l"
same_trees "$src" "$mnt/l/"
unmount_and_check

step "a user imports into a mount of their own, with their own rights"
# On some machines only the superuser may open /dev/fuse. In this mount namespace every user may.
mkdir "$work/devices" "$work/own" "$disk/own-store"
mount -t tmpfs -o dev siltfs-test "$work/devices"
mknod --mode 666 "$work/devices/fuse" c 10 229
chmod 666 "$work/devices/fuse"
mount --bind "$work/devices/fuse" /dev/fuse
chown 65534:65534 "$work/own" "$disk/own-store"
chmod 755 "$disk" "$src" "$src/tree"
chmod -R o+rX "$src/tree/deep/deeper"
as_nobody() { setpriv --reuid 65534 --regid 65534 --groups 4321 "$@"; }
mnt=$work/own store=$disk/own-store
as_nobody "$siltfs" mkfs "$store"
as_nobody "$siltfs" mount "$store" "$mnt"
mkdir "$src/mine"
echo one >"$src/mine/one"
chmod 6755 "$src/mine/one"
echo two >"$src/mine/two"
chown 65534:4321 "$src/mine/two"
chmod 6755 "$src/mine/two"
echo three >"$src/mine/three"
chmod 600 "$src/mine/three"
mknod "$src/mine/null" c 1 3
setfattr -n user.a -v b "$src/mine/one"
setfattr -n trusted.a -v b "$src/mine/one"
code=0
as_nobody "$siltfs" import --json "$src/mine" "$mnt/new" >"$work/json" 2>"$work/err" || code=$?
((code == 3)) || fail "exit code $code: $(cat "$work/err")"
holds "$(figure errors) == 2 and $(figure files) == 2" # the unreadable file and the device node
[[ $(as_nobody stat -c '%u:%g %a' "$mnt/new/mine/one") == "65534:65534 755" ]] || fail "set-id bits of others are kept"
[[ $(as_nobody stat -c '%u:%g %a' "$mnt/new/mine/two") == "65534:4321 6755" ]] || fail "the user's own bits are lost"
as_nobody getfattr -d -m - "$mnt/new/mine/one" | grep -q 'user.a="b"' || fail "a user's attribute is lost"
as_nobody mkdir "$mnt/locked" "$mnt/closed" "$mnt/closed/inner"
as_nobody chmod 555 "$mnt/locked"
as_nobody chmod 666 "$mnt/closed"
code=0
as_nobody "$siltfs" import --json "$src/mine/one" "$mnt/locked" >"$work/json" 2>"$work/err" || code=$?
((code == 3)) || fail "an import into a directory without write permission ends with $code: $(cat "$work/json")"
jq -e '.error_list[0].cause' "$work/json" | grep -q denied || fail "no reason: $(cat "$work/json")"
! as_nobody stat "$mnt/locked/one" 2>/dev/null || fail "it was imported anyway"
code=0
as_nobody "$siltfs" import --json "$src/mine/one" "$mnt/closed/inner" >"$work/json" 2>"$work/err" || code=$?
((code == 1)) || fail "an import below a directory without search permission ends with $code: $(cat "$work/err")"
as_nobody "$siltfs" umount "$mnt"
