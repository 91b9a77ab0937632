#!/usr/bin/env bash
# check_version.sh SOURCE-DIRECTORY BUILD-DIRECTORY VERSION: the version of siltfs is the same
# everywhere, tools/check-version finds each place that differs, and the file for continuous
# integration calls programs that exist.
set -euo pipefail

source=$1 build=$2 version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

[[ $("$source/tools/check-version") == "$version" ]] || fail "tools/check-version does not print $version"
grep -qE "^siltfs \($version-[A-Za-z0-9.+~]+\) " "$build/debian/changelog" || fail "the changelog of the package: $(head -n 1 "$build/debian/changelog")"

copy() { # a source tree with only the files that have versions
  rm -rf "$work/tree"
  mkdir -p "$work/tree/tools/debian" "$work/tree/store/superblock"
  for file in CMakeLists.txt CHANGELOG.md tools/debian/changelog.in store/superblock/superblock.h; do
    cp "$source/$file" "$work/tree/$file"
  done
}
check() { "$source/tools/check-version" "$@" "$work/tree" 2>"$work/message" >/dev/null; }
refused() { # WORDS OPTION...
  local words=$1
  shift
  ! check "$@" || fail "it accepts a tree in which $words should be refused"
  grep -qF "$words" "$work/message" || fail "it says \"$(cat "$work/message")\" instead of \"$words\""
}
format=$(sed -n 's/^inline constexpr uint32_t kStoreFormatVersion = \([0-9]*\);.*/\1/p' "$source/store/superblock/superblock.h")
copy
check || fail "$(cat "$work/message")"
sed -i 's/^project(siltfs VERSION [0-9.]*/project(siltfs VERSION 7.8.9/' "$work/tree/CMakeLists.txt"
refused 'does not name version 7.8.9'
copy
sed -i 's/kStoreFormatVersion = [0-9]*/kStoreFormatVersion = 99/' "$work/tree/store/superblock/superblock.h"
refused 'format version 99'
copy
sed -i "0,/^## .*/s//## 7.8.9 (2030-01-31, format version $format)/" "$work/tree/CHANGELOG.md"
refused "does not name version $version"
copy
sed -i "0,/^## .*/s//## Unreleased ($version, format version $format)/" "$work/tree/CHANGELOG.md"
refused 'the heading of a release is' --release
copy
sed -i 's/@siltfs_debian_version@/0.0.1-1/' "$work/tree/tools/debian/changelog.in"
refused 'does not take the version'

# A released tree: the heading has a date, and the commit has the tag.
copy
sed -i "0,/^## .*/s//## $version (2030-01-31, format version $format)/" "$work/tree/CHANGELOG.md"
git=(git -C "$work/tree" -c user.name=test -c user.email=test@test.invalid -c init.defaultBranch=main)
"${git[@]}" init --quiet
"${git[@]}" add .
"${git[@]}" commit --quiet --message test
refused "does not have the tag v$version" --release
"${git[@]}" tag "v$version"
check --release || fail "it refuses a release: $(cat "$work/message")"

workflow=$source/.github/workflows/ci.yml
for tool in run-tests check-version make-packages quickstart; do
  [[ -x $source/tools/$tool ]] || fail "there is no tools/$tool"
  grep -q "tools/$tool" "$workflow" || fail "$workflow does not call tools/$tool"
done
for release in 12 13; do
  grep -q "debian: .*\"$release\"" "$workflow" || fail "$workflow does not use Debian $release"
done
echo "all well"
