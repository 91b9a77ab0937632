#!/bin/bash
# Mounts of another user that only claim to be siltfs stores: whatever they answer, the exporter,
# `siltfs list` and the checks of real stores go on.
#
#   false_store_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/other_user.sh
source "$(dirname "$0")/other_user.sh"
here=$(realpath "$(dirname "$0")")

false_store=$disk/false
false_mnt=$work/false
make_and_mount
statistics=$("$siltfs" stat --json "$mnt" | tr -d '\n')
let_other_user_mount "$false_store" "$false_mnt"

: >"$work/exporter"
"$siltfs" metrics --listen 127.0.0.1:0 2>"$work/exporter" &
exporter=$!
until grep -q "are served at" "$work/exporter"; do
  kill -0 "$exporter" 2>/dev/null || fail "the exporter has ended: $(cat "$work/exporter")"
  sleep 0.1
done
url=$(sed -n 's|.* are served at ||p' "$work/exporter")

# The metrics must come within the time that Prometheus waits, from one exporter that goes on.
check_exporter() {
  sleep 1.1 # the exporter gives its last text again for a second
  python3 - "$url" >"$work/text" <<'PYTHON' || fail "$what: no metrics: $(cat "$work/exporter")"
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode(), end="")
PYTHON
  kill -0 "$exporter" 2>/dev/null || fail "$what: the exporter has ended: $(cat "$work/exporter")"
  grep -qxF "siltfs_up{store=\"$store\"} 1" "$work/text" || fail "$what: $(cat "$work/text")"
}
start_false_store() { # STORE MODE
  : >"$work/false-out" # before the loop below looks into it; it has the output of an earlier one
  as_nobody env PATH=/usr/sbin:/usr/bin:/sbin:/bin python3 "$here/false_store.py" "$1" "$false_mnt" "$2" "$statistics" >"$work/false-out" 2>&1 &
  false_pid=$!
  until grep -q ready "$work/false-out"; do
    kill -0 "$false_pid" 2>/dev/null || fail "no false store: $(cat "$work/false-out")"
    sleep 0.1
  done
}
end_false_store() {
  umount --lazy "$false_mnt"
  kill "$false_pid"
  wait "$false_pid" 2>/dev/null || true
  rm -f "$false_store/control"
}
# A sentence, not the message of a failed assertion or of a library.
fails_with_a_sentence() { # ARGUMENT...
  local code=0
  timeout 60 "$siltfs" "$@" >"$work/out" 2>"$work/err" || code=$?
  ((code >= 1 && code <= 13)) || fail "$what: siltfs $* ends with $code: $(cat "$work/err")"
  ! grep -qE "unexpectedly|exception" "$work/out" "$work/err" || fail "$what: $(cat "$work/err")"
}

for what in empty array types nested slow; do
  step "a mount with answers of the kind \"$what\""
  start_false_store "$false_store" "$what"
  timeout 60 "$siltfs" list >"$work/list" 2>&1 || fail "$what: the list ends: $(cat "$work/list")"
  grep -qE "^$store +$mnt .* ok$" "$work/list" || fail "$what: $(cat "$work/list")"
  grep -qE "^$false_store +$false_mnt .* not answering$" "$work/list" || fail "$what: $(cat "$work/list")"
  check_exporter
  [[ $what == slow ]] || fails_with_a_sentence stat "$false_mnt"
  fails_with_a_sentence check-health --timeout 2 "$false_mnt"
  end_false_store
done

step "a mount that names the store of root"
what="the name of another store"
start_false_store "$store" silent
check_exporter
"$siltfs" check-health --full 0 --nearly-full 0 "$store" >"$work/out" || fail "check-health: $(cat "$work/out")"
"$siltfs" metrics "$store" | grep -qxF "siltfs_up{store=\"$store\"} 1" || fail "metrics of the store"
end_false_store

kill "$exporter"
wait "$exporter" || fail "the exporter ends with $?"
unmount_and_check

echo "all well"
