#!/bin/bash
# Makes and mounts a store, runs a program on it, unmounts, and checks the store.
#
#   on_a_mount.sh [--disk SIZE] SILTFS COMMAND...
#
# --disk puts the store on a separate disk (in memory) of this size. No other program uses or frees
# space there.
#
# The environment of COMMAND has the mountpoint in SILTFS_POSIX_DIRECTORY and the program siltfs in
# SILTFS_PROGRAM. To test another file system, run COMMAND without this script and set only
# SILTFS_POSIX_DIRECTORY. Test cases for promises of siltfs alone are tagged [siltfs].
set -euo pipefail

size=
arguments=("$@")
if [[ $1 == --disk ]]; then
  size=$2
  shift 2
fi
siltfs=$1
command=("${@:2}")
set -- "${arguments[@]}"
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

[[ -z $size ]] || mount -t tmpfs -o "size=$size,mode=755" siltfs-test "$disk"
make_and_mount
code=0
SILTFS_POSIX_DIRECTORY=$mnt SILTFS_PROGRAM=$siltfs "${command[@]}" || code=$?
unmount_and_check
if ((code == 0)) && [[ -s $work/log ]]; then sed 's/^/log: /' "$work/log"; fi
exit $code
