#!/usr/bin/env bash
# check_format.sh SOURCE-DIRECTORY: checks that clang-format 14 would change no C++ source. Other
# versions differ in details, so the test is skipped without this version (Debian 12 has it).
set -euo pipefail

command -v clang-format-14 >/dev/null || {
  printf 'clang-format-14 is not installed\n'
  exit 77
}
cd "$1"
find store chunker index fs tools tests \( -name '*.cc' -o -name '*.h' \) -print0 |
  xargs -0 clang-format-14 --dry-run -Werror
