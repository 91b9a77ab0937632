#!/bin/bash
# Runs the units of tools/systemd under a real systemd: the service that mounts a store, and the
# services that check it. systemd is the first process of its own namespaces, and finds only these
# units and empty ones that they depend on. The test is skipped if systemd does not run there.
#
#   units_test.sh SILTFS UNIT-DIRECTORY
set -euo pipefail

siltfs=$1 units=$2
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

skip() {
  echo "SKIPPED: $*"
  exit 77
}
manager=/lib/systemd/systemd
[[ -x $manager && -s /etc/machine-id ]] || skip "there is no systemd"

mkdir "$work/units" "$work/generators" "$work/bin" "$work/hooks" "$work/etc"
cp "$units"/* "$work/units/"
for target in sysinit basic shutdown local-fs remote-fs timers multi-user; do
  printf '[Unit]\nDefaultDependencies=no\n' >"$work/units/$target.target"
done
# What the services print is read by the test.
for service in siltfs@ siltfs-fsck@ siltfs-scrub@ siltfs-failed@; do
  mkdir "$work/units/$service.service.d"
  printf '[Service]\nStandardOutput=append:%s\nStandardError=append:%s\n' "$work/out" "$work/out" \
    >"$work/units/$service.service.d/output.conf"
done
cat >"$work/units/test.service" <<END
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=$work/steps
StandardOutput=append:$work/steps-out
StandardError=append:$work/steps-out
ExecStopPost=systemctl --force exit
END
# The units name the program without a folder. While $work/slow exists, fsck does not end. While
# $work/slow-mount exists, no process makes the mount for the daemon.
# LeakSanitizer traces the process, which the services forbid.
cat >"$work/bin/siltfs" <<END
#!/bin/sh
export ASAN_OPTIONS="\$ASAN_OPTIONS:detect_leaks=0"
if [ "\$1" = fsck ] && [ -e "$work/slow" ]; then
  exec sleep 1000
fi
if [ "\$2" = --part=mount ] && [ -e "$work/slow-mount" ]; then
  exec sleep 1000
fi
exec "$siltfs" "\$@"
END
cat >"$work/etc/test.conf" <<END
STORE=$store
MOUNTPOINT=$mnt
OPTIONS=allow_other
SILTFS_HOOKS=$work/hooks
END
cat >"$work/etc/snapshot.conf" <<END
STORE=$store
MOUNTPOINT=$mnt-snapshot
OPTIONS=allow_other,snapshot=first
SILTFS_HOOKS=$work/hooks
END
mkdir "$mnt-snapshot" "$mnt-other"
cat >"$work/hooks/note" <<END
#!/bin/sh
echo "\$SILTFS_EVENT: \$SILTFS_MESSAGE" >>"$work/events"
END
chmod 755 "$work/bin/siltfs" "$work/hooks/note"

cat >"$work/boot" <<END
#!/bin/bash
set -e
# As systemd does on a machine, so that the daemon sees the mount that is made for it.
mount --make-rshared /
mount -t tmpfs siltfs-test /run
mount -t cgroup2 siltfs-test /sys/fs/cgroup
mount --bind "$work/bin" /usr/local/bin
mount -t tmpfs siltfs-test "$work/etc-of-system"
cp "$work/etc/"*.conf "$work/etc-of-system/"
mount --bind "$work/etc-of-system" /etc/siltfs
export container=test SYSTEMD_UNIT_PATH=/run/systemd/system:$work/units SYSTEMD_GENERATOR_PATH=$work/generators
exec $manager --system --unit=test.service --log-target=console --show-status=no
END
chmod 755 "$work/boot"
mkdir "$work/etc-of-system"
# /etc/siltfs exists only if the package is installed.
[[ -d /etc/siltfs ]] || {
  mkdir "$work/etc-over"
  mount -t tmpfs siltfs-test "$work/etc-over"
  mkdir "$work/etc-over/upper" "$work/etc-over/work" "$work/etc-over/upper/siltfs"
  mount -t overlay siltfs-test -o "lowerdir=/etc,upperdir=$work/etc-over/upper,workdir=$work/etc-over/work" /etc ||
    skip "there is no overlayfs"
}

cat >"$work/steps" <<END
#!/bin/bash
set -euo pipefail
siltfs=$siltfs store=$store mnt=$mnt work=$work
source "$(realpath "$(dirname "$0")")/held_file.sh"
END
cat >>"$work/steps" <<'END'
step() { echo "--- $*"; }
fail() {
  echo "FAILED: $*"
  cat "$work/out"
  [[ ! -e $work/events ]] || cat "$work/events"
  exit 1
}
trap 'cat "$work/out"' ERR
state() { systemctl show --property="$2" --value "$1"; } # UNIT PROPERTY
start_fails() {
  ! systemctl start "$1" || fail "$1 does not fail"
}
said() { grep -q -- "$1" "$work/out" || fail "\"$1\" was not printed"; }
until_true() { # COMMAND...
  local i
  for ((i = 0; i < 1200; ++i)); do
    ! "$@" >/dev/null 2>&1 || return 0
    sleep 0.05
  done
  fail "not so: $*"
}
mounted() { grep -q " $mnt fuse.siltfs " /proc/self/mounts; }
not_mounted() { # also not without a daemon, elsewhere, or in the namespace of a process that remains
  ! grep fuse.siltfs /proc/self/mounts || fail "still mounted"
}
# Whether the service has ended as after a regular stop.
stopped() { [[ $(state "$1" ActiveState) == inactive && $(state "$1" Result) == success ]]; }

step "the service mounts a store for all processes, and stops when everything is durable"
systemctl start siltfs@test
mounted || fail "not mounted"
pid=$(state siltfs@test MainPID)
[[ $(readlink "/proc/$pid/ns/mnt") != $(readlink /proc/self/ns/mnt) ]] || fail "the daemon has no mount namespace of its own"
grep -q '^CapEff:.0*6$' "/proc/$pid/status" || fail "capabilities: $(grep Cap "/proc/$pid/status")"
device=$(awk -v m="$mnt" '$5 == m {print $3}' /proc/self/mountinfo)
[[ $(cat "/sys/class/bdi/$device/read_ahead_kb") == 1024 ]] || fail "readahead: $(cat "/sys/class/bdi/$device/read_ahead_kb") KiB"
cp /usr/bin/bash "$mnt/file"
systemctl stop siltfs@test
not_mounted
"$siltfs" fsck -n --data "$store" || fail "fsck"
systemctl start siltfs@test
cmp /usr/bin/bash "$mnt/file" || fail "the file differs"

step "a sync makes data of open files durable, which a crash does not lose"
hold "$mnt/open" "before the sync"
"$siltfs" sync "$mnt" || fail "sync"
! grep -i "warn\|error" "$work/out" || fail "the daemon complains"

step "after a crash, the service removes the dead mount and starts again, though files are open"
pid=$(state siltfs@test MainPID)
kill -KILL "$pid"
again() { [[ $(state siltfs@test MainPID) != 0 && $(state siltfs@test MainPID) != "$pid" && $(state siltfs@test ActiveState) == active ]]; }
until_true again
lost_access
cmp /usr/bin/bash "$mnt/file" || fail "the file differs after the crash"
[[ $(cat "$mnt/open") == "before the sync" ]] || fail "synced data is lost"
(($(grep -c fuse.siltfs /proc/self/mounts) == 1)) || fail "the dead mount remains"

step "a stop with open files keeps their data, and leaves no mount"
hold "$mnt/open" "before the stop"
systemctl stop siltfs@test
not_mounted
stopped siltfs@test || fail "the stop: $(state siltfs@test Result)"
said 'programs that use the mount lose access to it'
lost_access
"$siltfs" fsck -n --data "$store" || fail "fsck"
systemctl start siltfs@test
[[ $(tail -n 1 "$mnt/open") == "before the stop" ]] || fail "the data is lost: $(cat "$mnt/open")"

step "an unmount by hand ends the service"
for unmount in umount "$siltfs umount"; do
  echo "$unmount" >"$mnt/file-2"
  $unmount "$mnt"
  until_true stopped siltfs@test
  not_mounted
  systemctl start siltfs@test
  [[ $(cat "$mnt/file-2") == "$unmount" ]] || fail "the file differs"
done

step "the daemon of the service serves mounts of snapshots"
"$siltfs" snapshot create "$mnt" first
"$siltfs" mount -o snapshot=first "$store" "$mnt-other"
cmp /usr/bin/bash "$mnt-other/file" || fail "the file differs in the snapshot"
exec 7<"$mnt-other/file"
systemctl start siltfs@snapshot
cmp /usr/bin/bash "$mnt-snapshot/file" || fail "the file differs in the snapshot of the service"
for files in closed open; do
  if [[ $files == open ]]; then exec 8<"$mnt-snapshot/file"; fi
  systemctl stop siltfs@snapshot
  stopped siltfs@snapshot || fail "the stop: $(state siltfs@snapshot Result)"
  ! grep " $mnt-snapshot " /proc/self/mounts || fail "the snapshot remains mounted"
  mounted || fail "not mounted"
  systemctl start siltfs@snapshot
done
exec 8<&-
systemctl stop siltfs@test
until_true eval '[[ $(state siltfs@snapshot ActiveState) != active ]]'
systemctl stop siltfs@snapshot
not_mounted
exec 7<&-
systemctl start siltfs@snapshot
cmp /usr/bin/bash "$mnt-snapshot/file" || fail "the file differs in the snapshot that is mounted alone"
! touch "$mnt-snapshot/new" 2>/dev/null || fail "the snapshot is writable"
systemctl stop siltfs@snapshot
not_mounted

step "the service works with the restrictions that are recommended for a single store"
mkdir -p /run/systemd/system/siltfs@test.service.d
printf '[Service]\nProtectSystem=strict\nReadWritePaths=%s\nProtectHome=yes\n' "$store" \
  >/run/systemd/system/siltfs@test.service.d/restrictions.conf
systemctl daemon-reload
systemctl start siltfs@test
[[ $(state siltfs@test ProtectSystem) == strict ]] || fail "the setting is not in use"
echo restricted >"$mnt/restricted"
"$siltfs" sync "$mnt" || fail "sync"
systemctl stop siltfs@test
stopped siltfs@test || fail "the stop: $(state siltfs@test Result)"
not_mounted
rm -r /run/systemd/system/siltfs@test.service.d
systemctl daemon-reload

step "a stop before the mount is made leaves no mount, and is no failure"
touch "$work/slow-mount"
systemctl start --no-block siltfs@test
waits_for_mount() { [[ $(state siltfs@test SubState) == start-post ]]; }
until_true waits_for_mount
not_mounted
systemctl stop siltfs@test
stopped siltfs@test || fail "the stop: $(state siltfs@test Result)"
not_mounted
rm "$work/slow-mount"

step "a failed start reports why, and leaves no mount but those of others"
"$siltfs" mount "$store" "$mnt-other"
: >"$work/out"
start_fails siltfs@test
[[ $(state siltfs@test ExecMainStatus) == 11 ]] || fail "exit code $(state siltfs@test ExecMainStatus)"
said "is mounted on $mnt-other by process"
! mounted || fail "mounted"
[[ -e $mnt-other/file ]] || fail "the mount of another process was removed"
"$siltfs" umount "$mnt-other"
systemctl reset-failed siltfs@test
sed -i 's/^OPTIONS=.*/OPTIONS=context=none/' /etc/siltfs/test.conf
: >"$work/out"
start_fails siltfs@test
said 'cannot be mounted'
[[ $(state siltfs@test ExecMainStatus) == 1 ]] || fail "exit code $(state siltfs@test ExecMainStatus)"
[[ $(state siltfs@test Result) == exit-code ]] || fail "the result: $(state siltfs@test Result)"
not_mounted
systemctl stop siltfs@test
sed -i 's/^OPTIONS=.*/OPTIONS=allow_other/' /etc/siltfs/test.conf
systemctl start siltfs@test
mounted || fail "not mounted"
rm "$work/events"

step "the check of a mounted store is a scrub, which leaves it mounted"
: >"$work/out"
systemctl start siltfs-fsck@test
said 'is mounted'
said 'nothing is damaged'
mounted || fail "not mounted"
: >"$work/out"
systemctl start siltfs-scrub@test
said 'nothing is damaged'

step "the check of a store that is not mounted is fsck"
systemctl stop siltfs@test
: >"$work/out"
systemctl start siltfs-fsck@test
said 'clean: '
! grep scrub "$work/out" || fail "it was a scrub"

step "a mount does not wait for a check, but stops it"
touch "$work/slow"
systemctl start --no-block siltfs-fsck@test
checking() { [[ $(state siltfs-fsck@test ActiveState) == activating && $(state siltfs-fsck@test MainPID) != 0 ]]; }
until_true checking
systemctl start siltfs@test
mounted || fail "not mounted"
[[ $(state siltfs-fsck@test ActiveState) == inactive ]] || fail "the check is $(state siltfs-fsck@test ActiveState)"
[[ ! -e $work/events ]] || fail "hooks were run: $(cat "$work/events")"
rm "$work/slow"

step "damage runs the hooks, whether the store is mounted or not"
systemctl stop siltfs@test
segment=$(ls -S "$store"/segments/*/*.seg | head -n 1)
printf rotten | dd of="$segment" bs=1 seek=100000 conv=notrunc status=none
start_fails siltfs-fsck@test
until_true grep -q 'unit-failed: siltfs-fsck@test.service has failed (exit-code, exit code 4)' "$work/events"
systemctl start siltfs@test
start_fails siltfs-fsck@test
until_true grep -q 'unit-failed: siltfs-fsck@test.service has failed (exit-code, exit code 13)' "$work/events"
start_fails siltfs-scrub@test
until_true grep -q 'unit-failed: siltfs-scrub@test.service has failed (exit-code, exit code 13); siltfs-fsck@test' "$work/events"
mounted || fail "not mounted"
systemctl stop siltfs@test
echo "all well"
END
chmod 755 "$work/steps"

if systemd-analyze --help 2>/dev/null | grep -q -- --threshold; then
  systemd-analyze security --offline=true --threshold=25 --no-pager "$units/siltfs@.service" >"$work/security" 2>&1 ||
    fail "the service is exposed: $(tail -n 3 "$work/security")"
fi

# systemd gets a control group of its own, which is the root of what it sees.
mkdir "$work/cgroup"
mount -t cgroup2 siltfs-test "$work/cgroup" || skip "there is no cgroup2"
group=$work/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/siltfs-units-test-$$-$RANDOM
mkdir "$group" 2>/dev/null || skip "no control group can be made"
remove_group() { find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true; }
trap 'code=$?; remove_group; set +e; (exit $code); clean_up' EXIT

"$siltfs" mkfs "$store"
code=0
timeout --kill-after=5 300 sh -c 'echo 0 >"$1/cgroup.procs" && exec unshare --pid --fork --kill-child --mount \
  --mount-proc --cgroup --uts --ipc --net "$2"' sh "$group" "$work/boot" >"$work/boot-out" 2>&1 </dev/null || code=$?
[[ -e $work/steps-out ]] || skip "systemd does not start here: $(tail -n 3 "$work/boot-out")"
cat "$work/steps-out"
grep -qx 'all well' "$work/steps-out" || fail "the steps did not end (systemd ended with $code): $(tail -n 20 "$work/boot-out")"
