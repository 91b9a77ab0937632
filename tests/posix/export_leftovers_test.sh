#!/bin/bash
# What an export leaves in its target if the client or the daemon is killed: only whole files have
# names, and the next export removes temporary names.
#
#   export_leftovers_test.sh SILTFS WITHOUT_UNNAMED_FILES
set -euo pipefail

siltfs=$1
without_unnamed_files=$(realpath "$2")
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"
# In one mode of this test the target seems to have no unnamed files, so all files get temporary
# names.
use() { # unnamed|named
  program=("$siltfs")
  [[ $1 == unnamed ]] || program=("$without_unnamed_files" "$siltfs")
}

out=$work/out
files=60 # of one megabyte
whole_files() { find "$out" -name 'large-*' | wc -l; }
temporary() { find "$out" -mindepth 2 -path '*/.siltfs-export-*' | wc -l; }
only_whole_files() {
  local file
  while read -r file; do
    cmp "$file" "$src/${file#"$out/"}" || fail "a part of a file has a name"
  done < <(find "$out" -name 'large-*')
}
exports() { # [OPTION]: exports without an error
  timeout 60 "${program[@]}" export "$@" "$mnt" "$out" >"$work/json" 2>"$work/err" ||
    fail "export ends with $?: $(cat "$work/err")"
}
no_leftovers() { [[ -z $(find "$out" -name '.siltfs-*') ]] || fail "left: $(find "$out" -name '.siltfs-*')"; }
# Whether the client has not ended.
alive() { [[ $(awk '{print $3}' "/proc/$client/stat" 2>/dev/null) == [^Z] ]]; }
# Whether all threads of the client are stopped.
stopped() {
  local state
  for state in /proc/"$client"/task/*/stat; do [[ $(awk '{print $3}' "$state") == T ]] || return 1; done
}
# Starts an export into an empty target, and stops the client between the first and the last file.
# `client` is its process.
stop_in_the_middle() {
  for attempt in {1..50}; do
    rm -rf "$out"
    "${program[@]}" export "$mnt" "$out" >"$work/out-of-client" 2>"$work/err-of-client" &
    client=$!
    until (($(whole_files 2>/dev/null) > 0)); do alive || break; done
    kill -STOP $client
    until stopped 2>/dev/null; do alive || break; done
    if alive && (($(whole_files) > 0 && $(whole_files) < files)); then return; fi
    echo "the export was too fast, attempt $attempt"
    kill -KILL $client
    wait $client || true
  done
  fail "the export was never stopped between two files"
}

make_and_mount
mkdir -p "$src/a" "$src/b/c"
for i in $(seq $files); do noise 1M "file $i" >"$src/b/large-$i"; done
for i in $(seq 50); do echo "$i" >"$src/a/small-$i"; done
"$siltfs" import "$src/" "$mnt" >/dev/null

# Links and nodes always need temporary names, so there are none here.
step "a killed client leaves nothing of files if the file system has unnamed files"
use unnamed
stop_in_the_middle
kill -KILL $client
wait $client || true
no_leftovers
only_whole_files
exports
same_trees "$src/" "$out/"

ln -s small-1 "$src/b/c/link"
mkfifo "$src/b/c/fifo"
ln "$src/a/small-1" "$src/b/c/small-again"
"$siltfs" import "$src/" "$mnt" >/dev/null

step "otherwise the next export removes what a killed client has left"
use named
stop_in_the_middle
kill -KILL $client
wait $client || true
(($(temporary) > 1)) || fail "no temporary file, so nothing is tested: $(find "$out")"
only_whole_files
exports
no_leftovers
same_trees "$src/" "$out/"

step "an export leaves alone the temporary files of another one, and of a stopped one"
use named
stop_in_the_middle
before=$(temporary)
((before > 1)) || fail "no temporary file, so nothing is tested"
exports
same_trees --exclude '.siltfs-export-*' "$src/" "$out/"
(($(temporary) == before)) || fail "of $before temporary names, $(temporary) are left"
kill -CONT $client
wait $client || fail "the other export ends with $?: $(cat "$work/err-of-client")"
no_leftovers
same_trees "$src/" "$out/"

step "what looks like a temporary name, but was not left by this user's export, stays"
mkdir -m 700 "$out/b/.siltfs-export-1-of-another"
mkdir "$out/b/.siltfs-export-2-for-all"
mkdir -m 700 "$out/b/.siltfs-export-3-with-files"
touch "$out/b/.siltfs-export-1-of-another/0" "$out/b/.siltfs-export-2-for-all/0"
touch "$out/b/.siltfs-export-3-with-files/file" "$out/b/.siltfs-export-4"
mkdir -m 700 "$out/b/kept"
touch "$out/b/kept/0"
ln -s kept "$out/b/.siltfs-export-5"
chown 1234 "$out/b/.siltfs-export-1-of-another"
exports
for name in 1-of-another/0 2-for-all/0 3-with-files/file 4 5; do
  [[ -e $out/b/.siltfs-export-$name ]] || fail "$name was removed"
done
[[ -e $out/b/kept/0 ]] || fail "a link was followed"

step "entries that replace others, links and nodes leave no temporary names"
for mode in unnamed named; do
  use $mode
  rm -rf "$out"
  mkdir -p "$out/b/c"
  echo old | tee "$out/b/large-1" "$out/b/c/link" >"$out/b/c/fifo"
  echo old >"$out/b/c/small-again"
  exports --verify
  no_leftovers
  same_trees "$src/" "$out/"
  [[ $out/a/small-1 -ef $out/b/c/small-again ]] || fail "a link is lost"
done

step "a killed daemon ends an export with an error"
for mode in unnamed named; do
  use $mode
  stop_in_the_middle
  kill -KILL "$("$siltfs" stat --json "$store" | jq .pid)"
  kill -CONT $client
  code=0
  wait $client || code=$?
  ((code == 1)) || fail "it ends with $code"
  [[ $(wc -l <"$work/err-of-client") == 1 ]] || fail "not one sentence: $(cat "$work/err-of-client")"
  grep -q 'daemon ended' "$work/err-of-client" || fail "another cause: $(cat "$work/err-of-client")"
  no_leftovers
  only_whole_files
  "$siltfs" umount "$mnt"
  mount_it
  exports
  same_trees "$src/" "$out/"
done
unmount_and_check
