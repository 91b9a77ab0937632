# Sourced by tests that export a mount by a file server, after own_network.sh and store_fixture.sh.
#
# shellcheck shell=bash

# Ends the test as skipped unless all these programs are installed.
needs_programs() { # PROGRAM...
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || {
      echo "SKIPPED: $program is not installed"
      exit 77
    }
  done
}

# Waits until the process listens on the port. Fails if it ends before.
await_port() { # PORT PROCESS LOG
  local i
  for ((i = 0; i < 1200; ++i)); do
    ! (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null || return 0
    kill -0 "$2" 2>/dev/null || break
    sleep 0.05
  done
  fail "the server does not listen: $(tail -n 20 "$3")"
}

# Mounts the store again, on another device number than before.
mount_on_another_device() { # [OPTION]
  local before i
  before=$(stat -c %d "$mnt")
  "$siltfs" umount "$mnt"
  # Another mount takes the number, once the kernel has freed it.
  for ((i = 0; i < 50; ++i)); do
    mkdir -p "$work/device-$i"
    mount -t tmpfs siltfs-test "$work/device-$i"
    [[ $(stat -c %d "$work/device-$i") != "$before" ]] || break
  done
  mount_it "$@"
  [[ $(stat -c %d "$mnt") != "$before" ]] || fail "the device number is the same as before"
}
