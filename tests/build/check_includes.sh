#!/usr/bin/env bash
# check_includes.sh COMPILER FLAGS-FILE SOURCE-ROOT (--compiles HEADER | --found HEADER | --missing HEADER)...
#
# Includes each header from one source, with the include directories and definitions of one target.
# --compiles: the source must compile. --found: all its includes must be found. --missing: it must
# fail because exactly that header is not found.
set -u
export LC_ALL=C
compiler=$1 flags_file=$2 source_root=$3
shift 3
[[ -r $flags_file ]] || {
  printf '%s: is missing: the build has no such target\n' "$flags_file" >&2
  exit 1
}
mapfile -t flags <"$flags_file"
cd / || exit 1 # a quoted include searches the source's own directory first; / has no headers of the project

failures=0
complain() {
  printf '%s\n' "$@" >&2
  failures=$((failures + 1))
}

# Prints the compiler's output, and fails if the compiler fails.
include() { # HEADER FLAG...
  local header=$1
  shift
  printf '#include "%s"\n' "$header" | "$compiler" -std=c++20 "$@" -x c++ "${flags[@]}" - -o /dev/null 2>&1
}

while (($# >= 2)); do
  expectation=$1 header=$2
  shift 2
  # The header must exist: --missing would also succeed for a header that does not exist.
  [[ -f $source_root/$header ]] || complain "$header: is not in the source tree"
  case $expectation in
    --compiles)
      said=$(include "$header" -fsyntax-only) || complain "$header: does not compile in its own folder:" "$said"
      ;;
    --found)
      said=$(include "$header" -E) || complain "$header: this folder may include it, but it or one of its includes is not found:" "$said"
      ;;
    --missing)
      if said=$(include "$header" -E); then
        complain "$header: this folder must not include it, but it is found"
      elif [[ $said != *"$header"*[Nn]"o such file"* && $said != *"$header' file not found"* ]]; then
        complain "$header: fails, but not because it is not found:" "$said"
      fi
      ;;
    *) complain "$expectation: unknown expectation" ;;
  esac
done
if (($# != 0)); then complain "$1: a header is missing after it"; fi
exit $((failures != 0))
