#!/usr/bin/env bash
# check_includes.sh COMPILER FLAGS-FILE SOURCE-ROOT (--compiles HEADER | --found HEADER | --missing HEADER)...
#
# Includes headers from a source, with the include directories and definitions of one target.
# --compiles: the source must compile. --found: the header and all its includes must be found.
# --missing: the header must not be found. The headers of --found are included together, and those
# of --missing are looked up together, because each run of the preprocessor takes time.
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

# Runs the compiler on standard input, and fails if the compiler fails.
compile() { # FLAG...
  "$compiler" -std=c++20 "$@" -x c++ "${flags[@]}" - 2>&1
}

found=() missing=()
while (($# >= 2)); do
  expectation=$1 header=$2
  shift 2
  # The header must exist: --missing would also succeed for a header that does not exist.
  [[ -f $source_root/$header ]] || complain "$header: is not in the source tree"
  case $expectation in
    --compiles)
      said=$(printf '#include "%s"\n' "$header" | compile -fsyntax-only) ||
        complain "$header: does not compile in its own folder:" "$said"
      ;;
    --found) found+=("$header") ;;
    --missing) missing+=("$header") ;;
    *) complain "$expectation: unknown expectation" ;;
  esac
done
if (($# != 0)); then complain "$1: a header is missing after it"; fi

if ((${#found[@]})); then
  said=$(printf '#include "%s"\n' "${found[@]}" | compile -E -o /dev/null) ||
    complain "this folder may include these headers, but one of them or of their includes is not found: ${found[*]}" "$said"
fi
if ((${#missing[@]})); then
  said=$(for header in "${missing[@]}"; do
    printf '#if __has_include("%s")\nfound "%s"\n#else\nmissing "%s"\n#endif\n' "$header" "$header" "$header"
  done | compile -E -P) || complain "the preprocessor fails:" "$said"
  for header in "${missing[@]}"; do
    case $'\n'$said$'\n' in
      *$'\n'"found \"$header\""$'\n'*) complain "$header: this folder must not include it, but it is found" ;;
      *$'\n'"missing \"$header\""$'\n'*) ;;
      *) complain "$header: the preprocessor does not say whether it is found:" "$said" ;;
    esac
  done
fi
exit $((failures != 0))
