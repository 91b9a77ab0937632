#!/usr/bin/env bash
# check_linked_libraries.sh SILTFS [SILTFS-BENCH]
#
# SILTFS must contain no symbol of the library of keys and values, and SILTFS-BENCH, if given, must
# contain some. The second check shows that the pattern still finds such symbols.
set -euo pipefail
export LC_ALL=C
pattern='siltfs::(KeyValueStore|KeyValueManifest|SegregatedStore|ValueLog|OpenValueBlock)'

symbols() { nm --demangle "$1" | grep -E "$2" || true; }

found=$(symbols "$1" "$pattern")
if [[ -n $found ]]; then
  printf '%s contains code of index/key_value:\n%s\n' "$1" "$(head -n 5 <<<"$found")" >&2
  exit 1
fi
# A stripped program would have no symbols at all.
if [[ -z $(symbols "$1" siltfs::SiltEngine) ]]; then
  printf '%s: nm finds no symbol of the index\n' "$1" >&2
  exit 1
fi
if (($# > 1)) && [[ -n $2 && -z $(symbols "$2" "$pattern") ]]; then
  printf '%s: nm finds no symbol of index/key_value; is the pattern right?\n' "$2" >&2
  exit 1
fi
