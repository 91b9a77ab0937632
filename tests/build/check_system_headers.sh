#!/usr/bin/env bash
# check_system_headers.sh SOURCE-ROOT
#
# Checks that external interfaces are used in few places only. libfuse is included only in
# fs/fuse, in its tests and in the block device of tests/crash/block. RocksDB is included only in
# fs/rocksdb and its tests, libcurl and Expat only in store/s3. Headers of the operating system's files, processes and sockets are included
# only in store/env and in fs/rings, whose subject is a kernel interface; fs/fuse may include those with
# constants of the kernel.
set -u
cd "$1" || exit 1
failures=0

# Prints the files below these folders that include one of these headers.
includers() { # PATTERN FOLDER...
  local pattern=$1
  shift
  grep -rlE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($pattern)[>\"]" --include='*.h' --include='*.cc' "$@"
}

only_in() { # WHAT PATTERN ALLOWED-PREFIXES FOLDER...
  local what=$1 pattern=$2 allowed=$3
  shift 3
  local found outside
  found=$(includers "$pattern" "$@" | sort)
  outside=$(grep -vE "^($allowed)/" <<<"$found" | grep .)
  if [[ -n $outside ]]; then
    printf '%s is included outside %s:\n%s\n' "$what" "${allowed//|/ and }" "$outside" >&2
    failures=$((failures + 1))
  fi
  if [[ -z $(grep -E "^($allowed)/" <<<"$found") ]]; then
    printf '%s is included nowhere in %s, so this check searches for the wrong headers\n' "$what" "${allowed//|/ and }" >&2
    failures=$((failures + 1))
  fi
}

product=(store chunker index fs tools)
only_in libfuse '(fuse3/)?(cuse|fuse)(_[a-z]+)?\.h' 'fs/fuse|tests/fs/fuse|tests/crash/block' "${product[@]}" tests
only_in RocksDB 'rocksdb/[^>"]*' 'fs/rocksdb|tests/fs/rocksdb' "${product[@]}" tests
only_in 'libcurl' 'curl/[^>"]*' 'store/s3' "${product[@]}" tests
only_in 'Expat' 'expat(_[a-z]+)?\.h' 'store/s3' "${product[@]}" tests
only_in 'the operating system' \
  'unistd\.h|fcntl\.h|dirent\.h|poll\.h|spawn\.h|mntent\.h|liburing[^>"]*|sys/(file|mount|socket|un|wait|mman|random|resource|statvfs|eventfd)\.h|filesystem|fstream' \
  'store/env|fs/fuse|fs/rings' "${product[@]}"
exit $((failures != 0))
