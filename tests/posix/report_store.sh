# Sourced by the tests of `siltfs report`, after store_fixture.sh. Makes stores with something in
# every plot.
#
# shellcheck shell=bash

# Fills a store in several mounts, so that its history has several samples. Chunks are shared up to
# three times. The store ends mounted.
make_report_store() {
  make_and_mount
  noise 30M one >"$mnt/one"
  cp "$mnt/one" "$mnt/two"
  "$siltfs" umount "$mnt"
  mount_it
  noise 20M three >"$mnt/three"
  head -c 12M "$mnt/one" >"$mnt/part"
  seq 1000000 >"$mnt/text"
  "$siltfs" umount "$mnt"
  mount_it
  "$siltfs" settle "$mnt" >/dev/null
  "$siltfs" scrub "$mnt" >/dev/null
}

# Writes the statistics of PLACE to $work/stat and $work/index, and its page to FILE.
report_of() { # PLACE FILE
  "$siltfs" report "$1" -o "$2" --quiet 2>"$work/err" || fail "report fails: $(cat "$work/err")"
  [[ ! -s $work/err ]] || fail "report says: $(cat "$work/err")"
  "$siltfs" stat --json "$1" >"$work/stat"
  "$siltfs" index stat --json "$1" >"$work/index"
}
check_page() { # FILE
  python3 "$here/check_report.py" "$1" "$work/stat" "$work/index" --scrubs 1 || fail "$1 is wrong"
}
