#!/usr/bin/env bash
# check_development.sh BUILD-DIRECTORY SOURCE-DIRECTORY COMPILER: installs the library of chunks into
# an empty directory, and builds and runs the example against it: by its CMake package and by
# pkg-config, at another place than the one that it was installed to.
set -euo pipefail

build=$1 source=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

cmake --install "$build" --component development --prefix "$work/first" >/dev/null || fail "cmake --install"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
(cd "$prefix" && find include -type f) >"$work/headers"
[[ $(cat "$work/headers") == include/siltfs/chunks.h ]] || fail "other headers are installed: $(cat "$work/headers")"
# The header needs no other header of siltfs.
printf '#include <siltfs/chunks.h>\n' |
  "$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$prefix/include" -x c++ - || fail "the header"

cmake -S "$prefix/share/doc/siltfs-dev/examples/chunks" -B "$work/example" -G Ninja \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/example" >>"$work/log" 2>&1 || fail "the example with find_package(siltfs): $(cat "$work/log")"

pc=$(dirname "$(find "$prefix" -name siltfs.pc)")
flags() { PKG_CONFIG_PATH=$pc pkg-config "$@" siltfs; }
[[ $(flags --modversion) == "$(sed -n 's/^project(siltfs VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")" ]] ||
  fail "the version in siltfs.pc is $(flags --modversion)"
read -ra options <<<"$(flags --cflags --libs)"
"$compiler" -std=c++20 "$source/docs/examples/chunks/main.cc" "${options[@]}" -o "$work/example/with-pkg-config" ||
  fail "the example with pkg-config"

head -c 3000000 /dev/urandom >"$work/content"
(echo "some bytes before" && cat "$work/content") >"$work/shifted"
for example in "$work/example/example" "$work/example/with-pkg-config"; do
  store=$work/$(basename "$example").store
  for file in content shifted; do
    "$example" put "$store" "$work/$file" >"$work/$file.chunks" || fail "put $file"
    "$example" get "$store" <"$work/$file.chunks" | cmp - "$work/$file" || fail "get $file"
  done
  used=$(du --summarize --block-size=1 "$store/segments" | cut -f 1)
  ((used < 4000000)) || fail "two files that share their content take $used bytes"
  status=0
  "$example" get "$work/missing" </dev/null 2>"$work/message" || status=$?
  [[ $status == 1 && $(cat "$work/message") == *"there is no siltfs store here"* ]] ||
    fail "a missing store: exit code $status, $(cat "$work/message")"
done
[[ $("$work/example/example" get "$work/example.store" <<<"0000 1" 2>&1) == *"is not a chunk"* ]] || fail "a malformed name"
# Other commands refuse the store.
status=0
"$build/bin/siltfs" stat "$work/example.store" 2>"$work/message" || status=$?
[[ $status == 1 && $(cat "$work/message") == *"chunks of a program"* ]] || fail "siltfs stat: exit code $status, $(cat "$work/message")"
echo "all well"
