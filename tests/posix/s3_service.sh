# Sourced by the tests of stores in a bucket, after store_fixture.sh. Starts a service that speaks the
# protocol of S3 (tests/support/s3_server.py, whose path is in `server`). `endpoint` is its address; the
# credentials are in the environment. The bucket `bucket` is empty.
#
# If SILTFS_TEST_S3_FORWARD has the address of a real service, requests go there, through the same
# server, which injects the same faults (tests/services/with_service.sh starts such services).
#
# shellcheck shell=bash

export AWS_ACCESS_KEY_ID=test-key AWS_SECRET_ACCESS_KEY=test-secret
if [[ -n ${SILTFS_TEST_S3_FORWARD:-} ]]; then
  python3 "$(dirname "$server")/../../tools/bench/peers/s3_bucket.py" "$SILTFS_TEST_S3_FORWARD" empty bucket
fi
coproc service { exec python3 "$server" ${SILTFS_TEST_S3_FORWARD:+--forward "$SILTFS_TEST_S3_FORWARD"}; }
read -r answer <&"${service[0]}"
endpoint=http://127.0.0.1:$(sed 's/[^0-9]//g' <<<"$answer")

# Passes a command to the service; its answer is in `answer`.
control() { # JSON
  echo "$1" >&"${service[1]}"
  read -r answer <&"${service[0]}"
}

# Prints a value of the bucket's statistics.
bucket() { # MOUNTPOINT KEY
  "$siltfs" stat "$1" --json | jq -r ".bucket.$2"
}

# Waits until the bucket has everything.
await_bucket() { # MOUNTPOINT
  local behind
  for _ in $(seq 600); do
    behind=$("$siltfs" stat "$1" --json | jq '.bucket.commits_behind + .bucket.waiting_segments')
    ((behind == 0)) && return
    sleep 0.1
  done
  fail "the bucket stays behind: $("$siltfs" stat "$1" --json | jq -c .bucket)"
}
