#!/usr/bin/env bash
# check_services.sh S3-TEST
#
# Runs the contract of object stores on the services that are installed: moto (`moto_server`), which
# imitates Amazon S3, and MinIO (`minio`). Each of them is started on a free port of 127.0.0.1, with
# a bucket in a temporary directory, and ended. Exits with 77 if neither is in PATH. A service that
# runs elsewhere is tested with SILTFS_TEST_ENDPOINT, SILTFS_TEST_BUCKET and AWS_ACCESS_KEY_ID,
# AWS_SECRET_ACCESS_KEY in the environment.
set -euo pipefail

test=$1
work=$(mktemp -d)
server=
stop() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  server=
}
trap 'stop; rm -rf "$work"' EXIT
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

wait_for_port() { # PORT
  for _ in {1..300}; do
    if (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return 0; fi
    kill -0 "$server" 2>/dev/null || fail "the server has ended: $(cat "$work/log")"
    sleep 0.1
  done
  fail "the server does not listen: $(cat "$work/log")"
}

run() { # NAME
  printf '%s: ' "$1"
  "$test" '[.service]' >"$work/output" 2>&1 || { cat "$work/output" >&2; fail "$1"; }
  tail -n 2 "$work/output" | grep .
}

if [[ -n ${SILTFS_TEST_ENDPOINT:-} ]]; then
  run "$SILTFS_TEST_ENDPOINT"
  exit 0
fi

export AWS_ACCESS_KEY_ID=contract-key AWS_SECRET_ACCESS_KEY=contract-secret
export SILTFS_TEST_BUCKET='s3://contract/some prefix'
tested=0

if command -v moto_server >/dev/null; then
  port=$(free_port)
  moto_server --host 127.0.0.1 --port "$port" >"$work/log" 2>&1 &
  server=$!
  wait_for_port "$port"
  # moto does not check signatures.
  python3 -c 'import sys, urllib.request as u
u.urlopen(u.Request(sys.argv[1], method="PUT", headers={"Authorization": "AWS4-HMAC-SHA256 Credential=a/20240101/us-east-1/s3/aws4_request"})).read()' \
    "http://127.0.0.1:$port/contract"
  # It checks a condition and puts the object in two steps, and it answers requests in several threads.
  SILTFS_TEST_LEFT_OUT='one of several first puts succeeds;replacements lose no update;' \
    SILTFS_TEST_ENDPOINT=http://127.0.0.1:$port run moto
  stop
  tested=$((tested + 1))
fi

if command -v minio >/dev/null; then
  port=$(free_port)
  mkdir -p "$work/minio/contract" # a directory is a bucket
  MINIO_ROOT_USER=$AWS_ACCESS_KEY_ID MINIO_ROOT_PASSWORD=$AWS_SECRET_ACCESS_KEY MINIO_BROWSER=off \
    minio server --quiet --address "127.0.0.1:$port" "$work/minio" >"$work/log" 2>&1 &
  server=$!
  wait_for_port "$port"
  SILTFS_TEST_ENDPOINT=http://127.0.0.1:$port run minio
  stop
  tested=$((tested + 1))
fi

((tested > 0)) || { printf 'neither moto_server nor minio is in PATH\n' >&2; exit 77; }
