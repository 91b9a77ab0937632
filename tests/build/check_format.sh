#!/usr/bin/env bash
# check_format.sh SOURCE-DIRECTORY: each C++ source is laid out as clang-format 14 does it. Other versions differ in
# details, so without this one (Debian 12 has it) the test is skipped.
set -euo pipefail

command -v clang-format-14 >/dev/null || {
  printf 'clang-format-14 is not installed\n'
  exit 77
}
cd "$1"
find store chunker index fs tools tests \( -name '*.cc' -o -name '*.h' \) -print0 |
  xargs -0 clang-format-14 --dry-run -Werror
