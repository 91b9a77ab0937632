# Sourced by tests in which a program has a file of the mount open while its daemon ends, after
# store_fixture.sh. Needs the variable `work` and the function `fail`.
#
# shellcheck shell=bash

# A program that has a file open: writes a line to it, makes the file HELD, and waits until HELD is
# removed. Then it writes again. Fails if that works. The kernel sends the first line to the daemon
# only if something asks for it.
cat >"$work/holder" <<'END'
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(file, sys.argv[3].encode() + b"\n")
open(sys.argv[2], "w").close()
while os.path.exists(sys.argv[2]):
    time.sleep(0.02)
try:
    os.write(file, b"too late\n")
    os.fsync(file)
except OSError:
    sys.exit(0)
sys.exit(1)
END
hold() { # FILE LINE
  python3 "$work/holder" "$1" "$work/held" "$2" &
  holder=$!
  while [[ ! -e $work/held ]]; do
    kill -0 "$holder" || fail "the file cannot be written"
    sleep 0.02
  done
}
lost_access() {
  rm "$work/held"
  wait "$holder" || fail "the file can still be written"
}
