#!/bin/bash
# The disk below the store becomes full in the middle of an import: the import ends with a clear
# error, only whole files are there, and the next run completes when there is space again.
#
#   import_full_disk_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

mount -t tmpfs -o size=64m,nr_inodes=0 siltfs-test "$disk"
figure() { jq -e ".$1" "$work/json"; }
import() { # CODE ARGUMENT...
  local code=0 wanted=$1
  shift
  timeout 120 "$siltfs" import --json "$@" >"$work/json" 2>"$work/err" || code=$?
  ((code == wanted)) || fail "import $* ends with $code: $(cat "$work/err")"
}
# Counts the files that an import has put into $mnt/DIR. Fails unless each of them is whole.
whole_files() { # DIR
  local file count=0
  while read -r -d '' file; do
    cmp "$src/${file#"$mnt/$1/"}" "$file" >&2 || fail "only a part of a file is there"
    count=$((count + 1))
  done < <(find "$mnt/$1" -type f -print0)
  echo $count
}

# Small and large files take turns, so that the disk may become full in either of them.
for i in $(seq 12); do
  mkdir -p "$src/tree/dir-$i"
  noise 3M "large $i" >"$src/tree/dir-$i/large"
  noise 2M "small $i" | split --bytes 50K - "$src/tree/dir-$i/small-"
done
files=$(find "$src/tree" -type f | wc -l)

step "an import into a full disk ends with one clear sentence"
make_and_mount 2>/dev/null
noise 10M ballast >"$mnt/ballast"
import 1 "$src/tree" "$mnt/a"
[[ $(wc -l <"$work/err") == 1 ]] || fail "not one sentence: $(cat "$work/err")"
grep -qi 'space\|full' "$work/err" || fail "another cause: $(cat "$work/err")"
jq -e . "$work/json" >/dev/null || fail "no document: $(cat "$work/json")"

step "only whole files are there, also after the next mount"
count=$(whole_files a)
((0 < count && count < files)) || fail "$count of $files files were imported, so nothing is tested"
unmount_and_check
mount_it 2>/dev/null
(($(whole_files a) == count)) || fail "after the mount $(whole_files a) files are there, not $count"

step "a run on a disk that is still full fails in the same way"
import 1 "$src/tree" "$mnt/a"
(($(whole_files a) >= count)) || fail "files were lost"

step "after space is freed, the next run completes"
rm "$mnt/ballast"
"$siltfs" gc "$mnt" >/dev/null
mount -o remount,size=160m "$disk"
import 0 "$src/tree" "$mnt/a"
(($(figure files_unchanged) >= count)) || fail "files that were there are read again: $(cat "$work/json")"
same_trees "$src/tree" "$mnt/a/"
unmount_and_check
mount_it 2>/dev/null
same_trees "$src/tree" "$mnt/a/"
unmount_and_check
