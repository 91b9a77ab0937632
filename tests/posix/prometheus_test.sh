#!/bin/bash
# A real Prometheus reads the metrics of mounted stores from `siltfs metrics --listen`, its alert
# rules fire for stores in trouble, and every expression of the dashboard returns data.
#
# The rules are those of tools/monitoring without the times for which an alert must last ("for:").
# Prometheus reads and evaluates once a second.
#
#   prometheus_test.sh SILTFS MONITORING-DIRECTORY
set -euo pipefail

siltfs=$1
monitoring=$(realpath "$2")
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

# shellcheck source=tests/posix/prometheus_server.sh
source "$(dirname "$0")/prometheus_server.sh"

mount -t tmpfs -o size=600m,nr_inodes=0 siltfs-test "$disk"
bad_store=$disk/bad
bad_mnt=$work/bad
mkdir "$bad_mnt"

await_alert() { # ALERT STORE
  await "any(.[]; .state == \"firing\" and .labels.alertname == \"$1\" and .labels.store == \"$2\" and (.annotations.summary | contains(\"$2\")))" alerts
}
await_no_alert() { # ALERT STORE
  await "all(.[]; .labels.alertname != \"$1\" or .labels.store != \"$2\")" alerts
}
step "Prometheus reads the metrics of two stores"
"$siltfs" mkfs --delta on "$store"
mount_it
"$siltfs" mkfs "$bad_store"
"$siltfs" mount "$bad_store" "$bad_mnt" -o allow_other
start_exporter
start_prometheus "$monitoring"
await 'length == 2 and all(.[]; .value[1] == "1")' query siltfs_up
await "[.[] | .metric.store] | sort == ([\"$store\", \"$bad_store\"] | sort)" query siltfs_mounted
await 'length == 1 and .[0].value[1] == "1"' query 'up{job="siltfs"}'
# Counters have their type: Prometheus has read OpenMetrics.
python3 - "$prometheus" <<'PYTHON' || fail "the types are wrong"
import json, sys, urllib.request
with urllib.request.urlopen(f"http://{sys.argv[1]}/api/v1/metadata", timeout=30) as answer:
    data = json.load(answer)["data"]
kinds = {name: entries[0]["type"] for name, entries in data.items() if name.startswith("siltfs_")}
assert kinds.get("siltfs_added_bytes") == "counter" and kinds["siltfs_files"] == "gauge", kinds
assert len(kinds) > 30 and set(kinds.values()) == {"counter", "gauge"}, kinds
PYTHON

step "no alert for healthy stores"
noise 60M one >"$mnt/one"
noise 60M bad >"$bad_mnt/one"
"$siltfs" sync "$mnt"
await "any(.[]; (.value[1] | tonumber) > 60000000)" query "siltfs_logical_bytes{store=\"$store\"}"
# The data of this test let the free space fall quickly.
await '[.[].labels.alertname | select(startswith("Siltfs") and . != "SiltfsDiskFullSoon")] == []' alerts

step "every expression of the dashboard returns data"
"$siltfs" scrub "$mnt" >/dev/null
for i in 1 2 3 4; do
  noise 4M "more $i" >"$mnt/more-$i"
  cat "$mnt/more-1" >/dev/null
  "$siltfs" sync "$mnt"
  sleep 1.2 # for a sample in between
done
jq -r '.panels[].targets[].expr' "$monitoring/siltfs-dashboard.json" >"$work/expressions"
(($(wc -l <"$work/expressions") > 20)) || fail "the dashboard has few expressions"
while IFS= read -r expression; do
  await 'any(.[]; .value[1] != "NaN")' query "$(expression_of "$expression")"
done <"$work/expressions"
# The list of stores in the dashboard is a query, too.
[[ $(jq -r '.templating.list[] | select(.name == "store") | .query' "$monitoring/siltfs-dashboard.json") == "label_values(siltfs_up, store)" ]] ||
  fail "the dashboard finds stores in another way"

step "damage"
"$siltfs" umount "$bad_mnt"
segment=$(find "$bad_store/segments" -name '*.seg' -size +1M | sort | head -1)
at=$(($(stat -c %s "$segment") / 2))
byte=$(od -An -tu1 -j "$at" -N 1 "$segment")
printf '%b' "\\x$(printf %02x $(((byte + 1) % 256)))" | dd of="$segment" bs=1 seek="$at" conv=notrunc status=none
"$siltfs" mount "$bad_store" "$bad_mnt" -o allow_other
code=0
"$siltfs" scrub "$bad_mnt" >"$work/out" || code=$?
((code == 13)) || fail "the scrub ends with $code: $(cat "$work/out")"
await_alert SiltfsDamage "$bad_store"
await_no_alert SiltfsDamage "$store"

step "a disk that is nearly full, and full"
free=$(stat -f -c '%a * %S' "$disk")
fallocate -l $((free - 600 * 1024 * 1024 / 8)) "$disk/filler" # leaves an eighth
await_alert SiltfsDiskNearlyFull "$store"
await_no_alert SiltfsDiskFull "$store"
free=$(stat -f -c '%a * %S' "$disk")
fallocate -l $((free - 600 * 1024 * 1024 / 32)) "$disk/filler-2"
await_alert SiltfsDiskFull "$store"
rm "$disk"/filler*
await_no_alert SiltfsDiskNearlyFull "$store"

step "a store that a failure has made read-only"
mv "$bad_store/segments" "$bad_store/away"
for i in {1..10}; do
  if ! noise 40M "failing $i" >"$bad_mnt/failing" 2>/dev/null || ! "$siltfs" sync "$bad_mnt" 2>/dev/null; then break; fi
done
await_alert SiltfsFailed "$bad_store"
"$siltfs" umount "$bad_mnt" 2>/dev/null || true
mv "$bad_store/away" "$bad_store/segments"

step "a daemon that does not answer"
"$siltfs" mount "$bad_store" "$bad_mnt" -o allow_other
pid=$("$siltfs" stat --json "$bad_mnt" | jq .pid)
await_no_alert SiltfsFailed "$bad_store"
kill -STOP "$pid"
await_alert SiltfsNotAnswering "$bad_store"
await_no_alert SiltfsNotAnswering "$store"
kill -CONT "$pid"
await_no_alert SiltfsNotAnswering "$bad_store"
"$siltfs" umount "$bad_mnt"

step "the exporter has ended"
kill -TERM "$exporter"
wait "$exporter"
await 'any(.[]; .state == "firing" and .labels.alertname == "SiltfsExporterMissing")' alerts
start_exporter
await 'all(.[]; .labels.alertname != "SiltfsExporterMissing")' alerts
kill -TERM "$exporter" "$server"
wait "$exporter" "$server" || true
"$siltfs" umount "$mnt"

echo "all well"
