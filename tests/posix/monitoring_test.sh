#!/bin/bash
# Watches stores with the real program: `siltfs list`, `siltfs check-health` and `siltfs metrics` on
# healthy, damaged, failed, silent, read-only and unmounted stores.
#
#   monitoring_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/command_checks.sh
source "$(dirname "$0")/command_checks.sh"
# shellcheck source=tests/posix/other_user.sh
source "$(dirname "$0")/other_user.sh"

old=$work/old
mkdir "$old"
# The limits of the disk are switched off, because the disk of the test may be full.
no_disk=(--full 0 --nearly-full 0)

daemon_of() { "$siltfs" stat --json "$1" | jq -e .pid; }
# Runs check-health, which must end with CODE and print one line with TEXT.
health() { # CODE TEXT ARGUMENT...
  local code=0 wanted=$1 text=$2
  shift 2
  timeout 120 "$siltfs" check-health "${no_disk[@]}" "$@" >"$work/out" 2>"$work/err" || code=$?
  ((code == wanted)) || fail "check-health $* ends with $code: $(cat "$work/out" "$work/err")"
  (($(wc -l <"$work/out") == 1)) || fail "not one line: $(cat "$work/out")"
  [[ ! -s $work/err ]] || fail "check-health says: $(cat "$work/err")"
  grep -qE "^SILTFS (OK|WARNING|CRITICAL|UNKNOWN) - " "$work/out" || fail "no plugin: $(cat "$work/out")"
  grep -qF -- "$text" "$work/out" || fail "does not say \"$text\": $(cat "$work/out")"
}
# Fails unless this holds for the only element of the list with this mountpoint.
listed() { # MOUNTPOINT CONDITION OF JQ
  timeout 120 "$siltfs" list --json >"$work/json"
  local row
  row=$(jq --arg m "$1" '[.mounts[] | select(.mountpoint == $m)] | if length == 1 then .[0] else error("not listed once") end' "$work/json") ||
    fail "$1 is not listed once: $(cat "$work/json")"
  [[ $(jq "$2" <<<"$row") == true ]] || fail "not so: $2: $row"
}
# Prints a metric; fails if there is none.
metric() { # NAME PLACE
  "$siltfs" metrics "$2" 2>/dev/null | awk -v name="$1" '$1 ~ "^" name "{" {print $2; found = 1} END {exit !found}'
}
is() { # METRIC PLACE VALUE
  local value
  value=$(metric "$1" "$2") || true
  [[ $value == "$3" ]] || fail "$1 of $2 is \"$value\", not $3"
}

step "without a mount nothing is listed"
"$siltfs" list >"$work/out"
! grep -qF "$work" "$work/out" || fail "the list has $(cat "$work/out")"
run_json 0 list
holds "[.mounts[] | select(.store | startswith(\"$work\"))] == []"
if ! grep -q ' fuse.siltfs ' /proc/self/mounts; then
  [[ ! -s $work/out ]] || fail "list prints $(cat "$work/out")"
  holds '. == {"mounts": []}'
fi

step "a healthy store"
make_and_mount
pid=$(daemon_of "$mnt")
noise 60M one >"$mnt/one"
noise 20M two >"$mnt/two"
"$siltfs" sync "$mnt"
health 0 "of data in" "$mnt"
health 0 "$mnt: " "$store"
health 0 "$mnt: " --mounted "$mnt"
grep -q "| 'damaged_blocks'=0;;0;0 " "$work/out" || fail "no figures: $(cat "$work/out")"
health 2 "the disk below the store is" --full 1 "$mnt"
health 1 "the disk below the store is" --nearly-full 1 "$mnt"
health 1 'more than 1.0 MiB; run "siltfs settle' --backlog 1M "$mnt"
listed "$mnt" ".store == \"$store\" and .snapshot == null and .read_only == false and .pid == $pid and .answers and .health == \"ok\""
listed "$mnt" '.files == 2 and .logical_bytes == 83886080 and .stored_bytes > 1000000 and .total_ratio > 0.1'
"$siltfs" list >"$work/out"
grep -qE "^$store +$mnt +live files +rw +2 +80.0 MiB .* ok$" "$work/out" || fail "the list is $(cat "$work/out")"
is siltfs_up "$mnt" 1
is siltfs_mounted "$mnt" 1
is siltfs_files "$store" 2
is siltfs_logical_bytes "$mnt" 83886080

step "counters never fall, while the store is used"
(
  for i in 1 2 3 4 5 6; do
    noise 15M "$i" >"$mnt/used-$((i % 3))" || exit 1
    "$siltfs" sync "$mnt" || exit 1
    rm "$mnt/used-$((i % 3))" || exit 1
  done
  "$siltfs" gc "$mnt" >/dev/null
) &
using=$!
reads=0
while kill -0 $using 2>/dev/null || ((reads < 5)); do
  "$siltfs" metrics "$mnt" >"$work/metrics-$reads"
  reads=$((reads + 1))
done
wait $using || fail "the store cannot be used"
python3 - "$work"/metrics-*[0-9] <<'PYTHON' || fail "the metrics are wrong"
import re
import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError:
    parse = None
previous = {}
paths = sorted(sys.argv[1:], key=lambda path: int(path.rsplit("-", 1)[1]))
for path in paths:
    text = open(path, encoding="utf-8").read()
    if parse is not None:
        list(parse(text))
    assert text.endswith("\n# EOF\n"), path
    values = {key: float(value) for key, value in re.findall(r"^(\S+_total\{.*\}) (\S+)$", text, re.MULTILINE)}
    assert len(values) > 5, path
    for key, value in values.items():
        assert value >= previous.get(key, 0), f"{path}: {key} falls from {previous[key]} to {value}"
    assert set(previous) <= set(values), path
    previous = values
changed = [key for key, value in previous.items() if value > 0]
assert any(key.startswith("siltfs_added_bytes_total{") for key in changed), previous
assert any(key.startswith("siltfs_index_put_bytes_total{") for key in changed), previous
print(f"{len(paths)} reads,", "parsed" if parse else "without prometheus_client")
PYTHON

step "a file of metrics is always complete, and all users may read it"
file=$work/siltfs.prom
umask 077
"$siltfs" metrics "$mnt" --output "$file"
umask 022
[[ $(stat -c %a "$file") == 644 ]] || fail "the file has mode $(stat -c %a "$file")"
(for _ in {1..30}; do "$siltfs" metrics "$mnt" --output "$file" || exit 1; done) &
writing=$!
while kill -0 $writing 2>/dev/null; do
  [[ $(tail -n 1 "$file") == "# EOF" ]] || fail "the file is not complete"
done
wait $writing || fail "the file cannot be replaced"
[[ $(find "$work" -name 'siltfs.prom*' | wc -l) == 1 ]] || fail "files are left over"

step "another user"
chmod 711 "$disk"
code=0
as_nobody "$siltfs" check-health "$mnt" >"$work/out" || code=$?
((code == 3)) || fail "check-health of another user ends with $code: $(cat "$work/out")"
as_nobody "$siltfs" list --json >"$work/json"
holds "[.mounts[] | select(.mountpoint == \"$mnt\")] | map([.answers, .health, .pid, .files]) == [[false, \"not permitted\", null, null]]"
code=0
as_nobody "$siltfs" metrics "$mnt" >"$work/out" 2>"$work/err" || code=$?
((code == 1)) || fail "metrics of another user end with $code"
grep -q "^siltfs_up{.*} 0$" "$work/out" || fail "the metrics are $(cat "$work/out")"

step "a mounted snapshot"
"$siltfs" snapshot create "$mnt" monday >/dev/null
noise 1M three >"$mnt/three"
"$siltfs" mount "$store" "$old" -o snapshot=monday
listed "$old" ".snapshot == \"monday\" and .read_only and .pid == $pid and .answers and .files == 2 and .logical_bytes == 83886080"
listed "$mnt" '.snapshot == null and .read_only == false and .files == 3'
"$siltfs" list >"$work/out"
grep -qE " $old +snapshot monday +ro " "$work/out" || fail "the list is $(cat "$work/out")"
health 0 "of data in" "$old"
"$siltfs" umount "$old"

step "a daemon that is stopped"
kill -STOP "$pid"
SECONDS=0
listed "$mnt" '.answers == false and .health == "not answering" and .pid == null and .files == null'
((SECONDS < 30)) || fail "list takes $SECONDS s"
health 2 "is stopped and does not answer" "$mnt"
is siltfs_up "$mnt" 0
kill -CONT "$pid"
health 0 "of data in" "$mnt"

step "a daemon that was killed"
kill -KILL "$pid"
while kill -0 "$pid" 2>/dev/null && ! grep -qs "^State:.Z" "/proc/$pid/status"; do sleep 0.1; done
health 2 "was killed or crashed" "$mnt"
listed "$mnt" '.answers == false and .health == "crashed" and .pid == null'
is siltfs_up "$mnt" 0
code=0
"$siltfs" metrics "$mnt" --output "$file" 2>"$work/err" || code=$?
((code != 0)) || fail "metrics of a killed daemon succeed"
says "was killed or crashed"
grep -q "^siltfs_up{store=\"$store\"} 0$" "$file" || fail "the file has $(cat "$file")"

step "another daemon serves the store, but not the old mount"
"$siltfs" mount "$store" "$old" -o allow_other
health 0 "of data in" "$old"
health 2 "of this mount was killed or crashed" "$mnt"
listed "$old" '.answers and .health == "ok"'
listed "$mnt" '.answers == false and .health == "crashed"'
is siltfs_up "$mnt" 0
is siltfs_up "$old" 1
umount --lazy "$mnt"
"$siltfs" umount "$old"

step "a store that is not mounted"
health 0 "not mounted" "$store"
health 2 "is not mounted" --mounted "$store"
is siltfs_mounted "$store" 0
is siltfs_up "$store" 1
checks=()
for i in 1 2 3 4 5 6; do
  "$siltfs" check-health "${no_disk[@]}" "$store" >"$work/check-$i" &
  checks+=($!)
done
for check in "${checks[@]}"; do
  wait "$check" || fail "checks disturb each other: $(cat "$work"/check-*)"
done
# A check holds the lock of a store that is not mounted, for a moment.
(while [[ ! -e $work/enough ]]; do "$siltfs" metrics "$store" >/dev/null 2>&1 || true; done) &
checking=$!
for i in 1 2 3 4 5; do
  mount_it
  "$siltfs" umount "$mnt"
done
touch "$work/enough"
wait $checking
run_json 0 list
holds "[.mounts[] | select(.store == \"$store\")] == []"

step "no store"
health 3 "name the directory of a store" "$work/nothing"
health 3 "name the directory of a store" "$mnt"
code=0
"$siltfs" metrics "$work/nothing" >"$work/out" 2>"$work/err" || code=$?
((code == 10)) || fail "metrics of no store end with $code"
says "$work/nothing"

step "a store that is mounted read-only"
mount_it ro
listed "$mnt" '.read_only and .answers and .health == "ok"'
health 0 "of data in" "$mnt"
is siltfs_read_only "$mnt" 1
is siltfs_failed "$mnt" 0
"$siltfs" umount "$mnt"

step "damage, which a scrub finds"
segment=$(find "$store/segments" -name '*.seg' -size +30M | sort | head -1)
middle=$(($(stat -c %s "$segment") / 2))
byte=$(od -An -tu1 -j "$middle" -N 1 "$segment")
printf '%b' "\\x$(printf %02x $(((byte + 1) % 256)))" | dd of="$segment" bs=1 seek="$middle" conv=notrunc status=none
mount_it
health 0 "not verified yet" "$mnt"
! metric siltfs_last_scrub_timestamp_seconds "$mnt" >/dev/null || fail "there was no scrub"
before=$(date +%s)
code=0
"$siltfs" scrub "$mnt" >"$work/out" || code=$?
((code == 13)) || fail "the scrub ends with $code: $(cat "$work/out")"
health 2 'are damaged; run "siltfs scrub' "$mnt"
listed "$mnt" '.answers and .health == "damaged"'
is siltfs_damaged_blocks "$mnt" 1
scrubbed=$(metric siltfs_last_scrub_timestamp_seconds "$mnt")
holds_number() { [[ $(jq -n "$1") == true ]] || fail "not so: $1"; }
holds_number "$scrubbed >= $before and $scrubbed <= $(date +%s) + 1"
rm "$mnt/one" "$mnt/two" "$mnt/three"
"$siltfs" snapshot delete "$mnt" monday >/dev/null
"$siltfs" gc "$mnt" >/dev/null
health 0 "verified 0 days ago" "$mnt"
"$siltfs" umount "$mnt"
mount_it
is siltfs_last_scrub_timestamp_seconds "$mnt" "$scrubbed"

step "a store that a failure has made read-only"
mv "$store/segments" "$store/away"
for i in {1..10}; do
  if ! noise 60M "failing $i" >"$mnt/failing" 2>/dev/null || ! "$siltfs" sync "$mnt" 2>/dev/null; then break; fi
done
health 2 "a failure has made the store read-only" "$mnt"
listed "$mnt" '.answers and .health == "failed" and .read_only'
is siltfs_failed "$mnt" 1
is siltfs_read_only "$mnt" 1
"$siltfs" umount "$mnt" 2>/dev/null || true
mv "$store/away" "$store/segments"
mount_it
health 0 "of data in" "$mnt"
unmount_and_check
