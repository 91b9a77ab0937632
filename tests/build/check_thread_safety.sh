#!/usr/bin/env bash
# check_thread_safety.sh [--all-warnings] BUILD-DIRECTORY [FILE...]
#
# Checks the thread-safety annotations with clang; g++ ignores them. Checks the given sources, by
# default all sources of the product that the build compiles. With the compile commands of a unity
# build the check takes a third of the time, but FILE cannot be given, because these commands
# compile several files at once. --all-warnings: every warning is an error. Exits with 77 if clang
# is not installed, so that ctest skips the test.
set -euo pipefail

warnings=(-Wno-everything -Wthread-safety -Werror=thread-safety)
if [[ ${1:-} == --all-warnings ]]; then
  warnings=(-Wall -Wextra -Wthread-safety -Werror)
  shift
fi
build=$1
shift

# Debian calls the program clang++, or clang++-19 if only a certain version is installed.
versions=$({ compgen -c clang++- | grep -xE 'clang\+\+-[0-9]+' || true; } | sort -t- -k2 -rn | uniq | head -n 1)
clang=$(command -v clang++ || command -v "${versions:-clang++}") || {
  printf 'clang++ is not installed\n'
  exit 77
}

# Prints each source with its own flags, without the flags that only g++ knows.
commands=$(python3 - "$build" "$@" <<'END'
import json, os, shlex, sys

build = os.path.realpath(sys.argv[1])
wanted = {os.path.realpath(file) for file in sys.argv[2:]}
with open(os.path.join(build, "compile_commands.json")) as database:
    entries = json.load(database)
root = None
with open(os.path.join(build, "CMakeCache.txt")) as cache:
    for line in cache:
        if line.startswith("CMAKE_HOME_DIRECTORY:"):
            root = os.path.realpath(line.split("=", 1)[1].strip())
product = tuple(os.path.join(top, part) + os.sep
                for top in (root, build) for part in ("store", "chunker", "index", "fs", "tools"))
for entry in entries:
    file = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
    if file not in wanted if wanted else (not file.startswith(product) or "cmake_pch" in file):
        continue
    words = shlex.split(entry["command"])
    flags = [word for word in words if word[:2] in ("-I", "-D", "-m") or word.startswith("-std=")]
    flags += [f"-isystem{after}" for before, after in zip(words, words[1:]) if before == "-isystem"]
    print(shlex.join(flags + [file]))
END
)
[[ -n $commands ]] || {
  printf '%s: the build has no compile command for any source to check\n' "$build" >&2
  exit 1
}
xargs --max-lines=1 --max-procs="$(nproc)" "$clang" -fsyntax-only "${warnings[@]}" <<<"$commands"
