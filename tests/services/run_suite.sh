#!/usr/bin/env bash
# run_suite.sh [--cut SECONDS] SERVICE SILTFS TESTS
#
# Runs the tests of stores in a bucket and the mount suite on a real service (with_service.sh). TESTS is
# the directory with the programs of tests. Every twentieth request fails or has a wrong answer, in
# addition to what the service does. With --cut, one node after another is cut off meanwhile. Exits with
# 77 unless SILTFS_TEST_SCALE is 10, as tools/run-tests --long sets it, and if the service is missing.
set -euo pipefail

if [[ ${1:-} == --inside ]]; then
  shift
  service=$1 siltfs=$2 tests=$3
  posix=$(dirname "$(realpath "$0")")/../posix
  failed=()
  run() { # NAME COMMAND...
    local start=$SECONDS code=0
    "${@:2}" >"$output" 2>&1 || code=$?
    printf '%s: exit code %d after %d s\n' "$1" "$code" $((SECONDS - start))
    ((code == 0)) && return
    failed+=("$1")
    tail -n 60 "$output"
  }
  output=$(mktemp)
  trap 'rm "$output"' EXIT
  if [[ -z ${SILTFS_TEST_CUT:-} ]]; then
    # Ceph 16 answers 500 to some of several conditional PUTs that race, so their outcome is unknown.
    # siltfs has no such races: it replaces an object only to mend it, under a key of its own.
    if [[ $service == ceph ]]; then export SILTFS_TEST_LEFT_OUT="replacements lose no update;"; fi
    run contract env SILTFS_TEST_ENDPOINT="$SILTFS_TEST_S3_FORWARD" SILTFS_TEST_BUCKET='s3://bucket/some prefix' \
      "$tests/s3_test" '[.service]'
    # These tests stop and heal the service themselves.
    run bucket_mount_test "$posix/bucket_mount_test.sh" "$siltfs" "$posix/../support/s3_server.py"
    run bucket_disaster_test "$posix/bucket_disaster_test.sh" "$siltfs" "$posix/../support/s3_server.py"
  fi
  export SILTFS_TEST_BUCKET_STORES=1 SILTFS_TEST_BUCKET_FAULTS=0.05
  run posix_suite "$posix/on_a_mount.sh" "$siltfs" "$tests/posix_suite"
  run first_light_test "$posix/first_light_test.sh" "$siltfs"
  run gc_test "$posix/gc_test.sh" "$siltfs"
  run snapshot_test "$posix/snapshot_test.sh" "$siltfs"
  run tree_exerciser_test "$posix/tree_exerciser_test.sh" "$siltfs" "$tests/tree_exerciser" --processes 4 --operations 5000
  run file_exerciser_test "$posix/on_a_mount.sh" "$siltfs" "$tests/file_exerciser" --share --seeds 2 --operations 5000
  ((${#failed[@]} == 0)) || { printf 'FAILED: %s\n' "${failed[*]}"; exit 1; }
  exit 0
fi

cut=()
if [[ ${1:-} == --cut ]]; then
  cut=(--cut "$2")
  export SILTFS_TEST_CUT=1
  shift 2
fi
(($# == 3)) || { sed -n 's/^# \(run_suite.sh.*\)/usage: \1/p' "$0" >&2; exit 2; }
if [[ ${SILTFS_TEST_SCALE:-} != 10 ]]; then
  echo "only with SILTFS_TEST_SCALE=10"
  exit 77
fi
here=$(dirname "$(realpath "$0")")
exec "$here/with_service.sh" "${cut[@]}" "$1" "$here/run_suite.sh" --inside "$@"
