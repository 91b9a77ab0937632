#!/bin/bash
# The panels of the dashboard, drawn with the data of a real Prometheus while a store works, and
# looked at by headless Chromium (dashboard_page.py).
#
#   dashboard_test.sh SILTFS MONITORING-DIRECTORY [--screenshots DIRECTORY]
#
# With --screenshots the store works for two minutes, and the pictures and the page stay in DIRECTORY.
# Skipped (77) without Prometheus or Debian's package chromium.
set -euo pipefail

siltfs=$1
monitoring=$(realpath "$2")
here=$(dirname "$(realpath "$0")")
if ! command -v chromium >/dev/null; then
  echo "SKIPPED, chromium is not installed"
  exit 77
fi
# shellcheck source=tests/posix/store_fixture.sh
source "$here/store_fixture.sh"
# shellcheck source=tests/posix/prometheus_server.sh
source "$here/prometheus_server.sh"
# shellcheck source=tests/posix/browser.sh
source "$here/browser.sh"

pictures=$work/pictures rounds=4
if [[ ${3:-} == --screenshots ]]; then pictures=$4 rounds=40; fi
mkdir -p "$pictures"
mount -t tmpfs -o size=1500m,nr_inodes=0 siltfs-test "$disk"

step "a store works"
"$siltfs" mkfs --delta on "$store"
mount_it
start_exporter
start_prometheus "$monitoring"
await 'length == 1 and all(.[]; .value[1] == "1")' query siltfs_up
"$siltfs" scrub "$mnt" >/dev/null
for ((i = 0; i < rounds; ++i)); do
  noise $((4 + i % 5))M "data $i" >"$mnt/noise-$i"
  seq $((i * 100000)) $((i * 100000 + 400000)) >"$mnt/text-$i"
  if ((i % 3 == 2)); then cp "$mnt/noise-$((i - 1))" "$mnt/copy-$i"; fi
  if ((i % 7 == 6)); then rm "$mnt/noise-$((i - 3))"; fi
  "$siltfs" sync "$mnt"
  if ((rounds > 4 && i == 30)); then "$siltfs" gc "$mnt" >/dev/null; fi
  sleep 3 # for samples in between
done
while IFS= read -r expression; do
  await 'any(.[]; .value[1] != "NaN")' query "$(expression_of "$expression")"
done < <(jq -r '.panels[].targets[].expr' "$monitoring/siltfs-dashboard.json")

step "every panel can be drawn"
page=$pictures/dashboard.html
"$here/dashboard_page.py" "$monitoring/siltfs-dashboard.json" "$prometheus" "$page" \
  --seconds $((rounds * 3 + 10)) --rename "$store" /srv/store || fail "the dashboard cannot be drawn"

step "screenshots"
screenshot "$page" "$pictures/light.png" light 1280 2400
screenshot "$page" "$pictures/dark.png" dark 1280 2400
screenshot "$page" "$pictures/phone.png" light 390 6400
python3 "$here/check_pictures.py" --parts 5 "$pictures/light.png" "$pictures/dark.png" "$pictures/phone.png" ||
  fail "a screenshot is wrong"
kill -TERM "$exporter" "$server"
wait "$exporter" "$server" || true
"$siltfs" umount "$mnt"
echo "passed"
