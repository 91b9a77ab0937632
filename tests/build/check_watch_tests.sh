#!/usr/bin/env bash
# check_watch_tests.sh SOURCE-DIRECTORY: the last output before a test's time limit says what its processes
# wait for, also those in process namespaces of their own.
set -euo pipefail

source=$1
work=$(mktemp -d)
ctest= watcher=
clean_up() {
  if [[ -n $watcher ]]; then kill "$watcher" 2>/dev/null || true; fi
  if [[ -n $ctest ]]; then wait "$ctest" || true; fi # it ends the test at its limit
  rm -rf "$work"
}
trap clean_up EXIT

cat >"$work/hang.sh" <<'END'
#!/usr/bin/env bash
if [[ -z ${CONTAINED:-} ]] && unshare --pid --fork true 2>/dev/null; then
  CONTAINED=1 exec unshare --pid --fork --kill-child "$0" "$@"
fi
sleep 1234 &
wait
END
chmod +x "$work/hang.sh"
cat >"$work/CTestTestfile.cmake" <<END
add_test(hangs "$BASH" "$work/hang.sh" "argument")
set_tests_properties(hangs PROPERTIES TIMEOUT 18)
END
: >"$work/said"
ctest --test-dir "$work" --show-only=json-v1 >"$work/tests.json"
ctest --test-dir "$work" >"$work/ctest.log" 2>&1 &
ctest=$!
python3 "$source/tests/support/watch_tests.py" "$work/tests.json" $$ >"$work/said" &
watcher=$!
until grep -q "sleep 1234" "$work/said" || ! kill -0 "$ctest" 2>/dev/null; do sleep 0.1; done
grep -q "^== hangs will reach its limit of 18 s" "$work/said" && grep -q ": sleep 1234" "$work/said" &&
  grep -q "threads wait in: " "$work/said" || {
  printf 'FAILED: the watcher says: %s\n' "$(cat "$work/said")" >&2
  exit 1
}
