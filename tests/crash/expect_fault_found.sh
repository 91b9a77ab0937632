#!/usr/bin/env bash
# expect_fault_found.sh SILTFS-CRASHTEST OPTION...: the crash tests find a deliberately broken store
# within a thousand cuts. They report it with the documented exit code and JSON.
set -uo pipefail

found=$("$1" --cuts 1000 --seed 1 --jobs 2 --json --quiet "${@:2}" 2>/dev/null)
code=$?
illegal=$(jq .illegal <<<"$found")
printf '%s %s: %s of %s cuts illegal, exit code %d\n' "${1##*/}" "${*:2}" "$illegal" \
  "$(jq .cuts <<<"$found")" "$code"
# The program made all cuts, so it did not fail itself.
((code == 1 && illegal > 0)) && [[ $(jq .cuts <<<"$found") == 1000 ]]
