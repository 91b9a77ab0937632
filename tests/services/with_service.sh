#!/usr/bin/env bash
# with_service.sh [--cut SECONDS] [--keep DIRECTORY] SERVICE COMMAND...
#
# Starts a service with the protocol of S3 on ports of 127.0.0.1, runs COMMAND, and ends the service.
# SERVICE is
#   ceph      Ceph's gateway with a monitor and three storage daemons; two copies of each object
#   seaweed   SeaweedFS with one volume server
#   seaweed4  SeaweedFS with four volume servers; two copies of each object
# Programs are taken from PATH and from $SILTFS_TEST_SERVICES/bin (install_services.sh).
#
# With --cut, one node after another is cut off for SECONDS, with as much time in between: it is
# stopped, so that requests to it hang.
# Data is in a temporary directory, or in DIRECTORY, which must be empty and is kept, with the logs.
#
# COMMAND has the address in SILTFS_TEST_S3_FORWARD, and the credentials in AWS_ACCESS_KEY_ID and
# AWS_SECRET_ACCESS_KEY. The bucket `bucket` exists. Tests that source tests/posix/s3_service.sh then
# use this service, behind a server that injects faults. The exit code is that of COMMAND, or 77 if the
# service is not installed, or 1 if it does not start.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
cut=
directory=
while (($# > 0)); do
  case $1 in
    --cut) cut=$2 ;;
    --keep) directory=$2 ;;
    *) break ;;
  esac
  shift 2
done
(($# >= 2)) || { sed -n 's/^# \(with_service.sh.*\)/usage: \1/p' "$0" >&2; exit 2; }
service=$1
shift
[[ -z ${SILTFS_TEST_SERVICES:-} ]] || PATH=$SILTFS_TEST_SERVICES/bin:$PATH
export AWS_ACCESS_KEY_ID=test-key AWS_SECRET_ACCESS_KEY=test-secret

if [[ -n $directory ]]; then
  mkdir -p "$directory"
  data=$(realpath "$directory")
else
  data=$(mktemp -d --tmpdir siltfs-service-XXXXXX)
fi
pids=()  # all processes of the service
nodes=() # those that --cut stops
cutter=

stop() {
  local code=$?
  trap - EXIT
  [[ -z $cutter ]] || kill "$cutter" 2>/dev/null || true
  # Nothing reads the data again, so the processes need not end in order.
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  if ((code != 0 && code != 77)); then tail -n 20 "$data"/*.log >&2 || true; fi
  [[ -n $directory ]] || rm -rf "$data"
  exit $code
}
trap stop EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

fail() {
  printf 'with_service.sh: %s\n' "$*" >&2
  exit 1
}
need() { # PROGRAM...
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || {
      printf 'with_service.sh: %s is not installed\n' "$program" >&2
      exit 77
    }
  done
}
# Prints ports that no program uses. A fixed range below those that the kernel gives to clients.
free_ports() { # COUNT
  python3 - "$1" <<'END'
import random, socket, sys
held = []
while len(held) < int(sys.argv[1]):
    s = socket.socket()
    try:
        s.bind(("127.0.0.1", random.randrange(20000, 32000)))
        held.append(s)
    except OSError:
        pass
print(*(s.getsockname()[1] for s in held))
END
}
# Starts a process of the service; its output goes to DATA/NAME.log.
launch() { # NAME COMMAND...
  "${@:2}" </dev/null >"$data/$1.log" 2>&1 &
  pids+=($!)
}
await() { # WHAT COMMAND...
  local pid end=$((SECONDS + 300))
  while ((SECONDS < end)); do
    if "${@:2}" >/dev/null 2>&1; then return; fi
    for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null || fail "$1: a process of $service has ended"; done
    sleep 0.2
  done
  fail "$1: not within five minutes"
}

case $service in
  ceph) source "$here/ceph.sh" ;;
  seaweed | seaweed4) source "$here/seaweedfs.sh" ;;
  *) fail "there is no service $service" ;;
esac
start_service # sets `address`
await "a bucket" python3 "$here/../../tools/bench/peers/s3_bucket.py" "$address" make bucket

if [[ -n $cut ]]; then
  ((${#nodes[@]} > 1)) || fail "$service has only one node"
  (
    while true; do
      for pid in "${nodes[@]}"; do
        sleep "$cut"
        kill -STOP "$pid"
        sleep "$cut"
        kill -CONT "$pid"
      done
    done
  ) &
  cutter=$!
fi
code=0
SILTFS_TEST_S3_FORWARD=$address "$@" || code=$?
exit $code
