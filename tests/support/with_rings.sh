#!/bin/bash
# Runs a test whose mounts must use FUSE over io_uring. Skips it (77) if this kernel does not offer
# that, or if it is disabled: see docs/performance.md for the setting.
[[ $(cat /sys/module/fuse/parameters/enable_uring 2>/dev/null) == Y ]] || exit 77
SILTFS_TEST_IO_URING=on exec "$@"
