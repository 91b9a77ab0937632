# Sourced by tests that start network servers, before store_fixture.sh and with the arguments
# unchanged. Starts the test's script again in its own network namespace, which has only a loopback
# device. So servers can use their usual ports, and no other machine reaches them.
#
# shellcheck shell=bash

if [[ -z ${SILTFS_TEST_NETWORK:-} ]]; then
  SILTFS_TEST_NETWORK=own exec unshare --net "$0" "$@"
fi

python3 - <<'END'
import fcntl, socket, struct

SIOCSIFFLAGS, IFF_UP = 0x8914, 1
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
END
