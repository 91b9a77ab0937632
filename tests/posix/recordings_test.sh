#!/bin/bash
# The recordings that the documents show have the output of the present program
# (check_recordings.py). The sessions are run again for that, each on a store of its own.
#
#   recordings_test.sh SILTFS SOURCE-DIRECTORY
set -euo pipefail

siltfs=$(realpath "$1")
source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
timeout 500 "$source/tools/recordings/record" --text "$siltfs" "$work"
python3 "$source/tests/posix/check_recordings.py" "$source/docs/recordings" "$source/tools/recordings/sessions" "$work" \
  "$source/README.md" "$source"/docs/*.md
