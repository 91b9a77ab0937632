#!/bin/bash
# Makes pages with `siltfs report`, of mounted and unmounted stores, and compares their plots with the
# statistics of the store.
#
#   report_test.sh SILTFS
set -euo pipefail

siltfs=$1
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/posix/store_fixture.sh
source "$here/store_fixture.sh"
# shellcheck source=tests/posix/report_store.sh
source "$here/report_store.sh"

step "a mounted store"
make_report_store
report_of "$mnt" "$work/page.html"
check_page "$work/page.html"
grep -q "mounted on $mnt" "$work/page.html" || fail "the page does not name the mountpoint"
"$siltfs" report "$store" -o "$work/page2.html"
[[ -s $work/page2.html ]] || fail "the directory of a mounted store has no page"

step "a store that is not mounted, on which nothing is written"
unmount_and_check
listing() { find "$store" -printf '%P %s %T@\n' | sort; }
listing >"$work/before"
report_of "$store" "$work/page.html"
check_page "$work/page.html"
listing | diff "$work/before" - || fail "the report has changed the store"
mount_it ro
"$siltfs" report "$mnt" -o "$work/page.html" || fail "no report of a read-only mount"
"$siltfs" umount "$mnt"

step "a store after a crash"
mount_it
noise 1M four >"$mnt/four"
"$siltfs" sync "$mnt"
kill -KILL "$("$siltfs" stat --json "$mnt" | jq .pid)"
umount -l "$mnt"
while ! flock --nonblock "$store/lock" true; do sleep 0.1; done
report_of "$store" "$work/page.html"
check_page "$work/page.html"

step "dead chunks, and chunks that only a snapshot uses"
mount_it
distinct() { grep -oP 'Distinct chunks</dt><dd>\K[\d,]+' "$work/page.html" | head -1 | tr -d ,; }
before=$(distinct)
rm "$mnt/three"
"$siltfs" sync "$mnt"
"$siltfs" report "$mnt" -o "$work/page.html"
(($(distinct) < before - 1000)) || fail "$(distinct) chunks after a deletion, $before before"
grep -qE '(Half or more|Less than half)</dt><dd>[1-9]' "$work/page.html" || fail "no segment has dead chunks"
"$siltfs" snapshot create "$mnt" old >/dev/null
rm "$mnt/one" "$mnt/two"
"$siltfs" sync "$mnt"
"$siltfs" report "$mnt" -o "$work/page.html"
only=$(grep -oP 'Only in snapshots</dt><dd>\K[\d,]+' "$work/page.html")
((${only//,/} > 1000)) || fail "only $only chunks in snapshots"

step "a page that cannot be written, and one that is interrupted"
echo old >"$work/page.html"
code=0
"$siltfs" report "$mnt" -o "$mnt" 2>"$work/err" || code=$?
((code == 1)) || fail "a directory as the page: $code"
for signal in INT TERM HUP; do
  for delay in 0 0.002 0.005 0.01 0.02 0.04; do
    code=0
    env --default-signal=INT,HUP timeout --signal="$signal" --kill-after=60 "0$delay" "$siltfs" report "$mnt" -o "$work/page.html" 2>"$work/err" || code=$?
    # timeout ends with 124 after it has sent a signal.
    [[ $code == 0 || $code == 124 || $code == 130 ]] || fail "interrupted: $code: $(cat "$work/err")"
    [[ $(cat "$work/page.html") == old || $(tail -1 "$work/page.html") == "</html>" ]] || fail "half a page"
  done
done
left=("$work"/page.html.*)
[[ ! -e ${left[0]} ]] || fail "a temporary file stays: ${left[0]}"

step "an unmount ends a report"
"$siltfs" report "$mnt" -o "$work/page.html" 2>/dev/null &
reporter=$!
"$siltfs" umount "$mnt"
wait "$reporter" || true
unmount_checks=0
"$siltfs" fsck -n "$store" >"$work/fsck" 2>&1 || unmount_checks=$?
((unmount_checks == 0)) || fail "fsck: $(cat "$work/fsck")"
! compgen -G "$store/sort-survey" || fail "the directory for sorting stays"
echo "passed"
