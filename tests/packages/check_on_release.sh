#!/usr/bin/env bash
# check_on_release.sh SOURCE-DIRECTORY RELEASE
#
# Makes the packages on a fresh system with this release of Debian ("bookworm", "trixie"), and uses
# them on another fresh one: installation, the demonstration, a mount by fstab(5), the figures of the
# store, an upgrade while the store is mounted, rotation of the log, removal and purge. The example of
# siltfs-dev is built on the first system. Runs only with SILTFS_TEST_SCALE=10, as
# tools/run-tests --long sets it, because it compiles siltfs and fetches packages of Debian. It needs
# root, /dev/fuse, debootstrap and a mirror.
#
#   SILTFS_TEST_MIRROR  the mirror, if it is not debootstrap's default
#   SILTFS_TEST_TREES   the directory for the systems (default: /var/tmp); needs 6 GB
#   SILTFS_TEST_BASE      a directory with a fresh system to copy instead of making one by debootstrap
#   SILTFS_TEST_PACKAGES  a directory with packages of revision 1~RELEASE to use instead of making them
set -euo pipefail

source=$1 release=$2
skip() {
  echo "SKIPPED: $*"
  exit 77
}
((${SILTFS_TEST_SCALE:-1} >= 10)) || skip "only with SILTFS_TEST_SCALE=10 (tools/run-tests --long)"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
((EUID == 0)) && [[ -c /dev/fuse ]] || skip "only root with /dev/fuse can do this"

# A mount and a process namespace of its own, so that no mount and no daemon survives the test.
if [[ -z ${SILTFS_TEST_CONTAINED:-} ]]; then
  propagation=private
  unshare --mount --propagation private true 2>/dev/null || propagation=unchanged
  SILTFS_TEST_CONTAINED=$propagation exec unshare --mount --propagation "$propagation" --pid --fork --kill-child --mount-proc "$0" "$@"
fi

work=$(mktemp -d --tmpdir="${SILTFS_TEST_TREES:-/var/tmp}" "siltfs-packages-$release-XXXXXX")
clean_up() {
  local code=$?
  cd /
  while grep -q " $work" /proc/self/mounts; do umount --lazy "$(awk -v w="$work" '$2 ~ w {print $2}' /proc/self/mounts | tail -1)"; done
  if (($$ == 1)) && kill -KILL -- -1 2>/dev/null; then wait; fi
  rm -rf --one-file-system "$work"
  exit $code
}
trap clean_up EXIT
step() { echo "--- $(date +%T) $*"; }
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

step "$release: a fresh system"
mirror=()
if [[ -n ${SILTFS_TEST_MIRROR:-} ]]; then mirror=("$SILTFS_TEST_MIRROR"); fi
if [[ -n ${SILTFS_TEST_BASE:-} ]]; then
  cp -a "$SILTFS_TEST_BASE" "$work/base"
elif ! debootstrap --variant=minbase "$release" "$work/base" "${mirror[@]}" >"$work/debootstrap.log" 2>&1; then
  tail -n 5 "$work/debootstrap.log"
  grep -qE "^E: (Failed getting|Couldn't download|Unable to)|Failure trying to run: wget" "$work/debootstrap.log" &&
    skip "there is no mirror to install $release from"
  fail "debootstrap failed"
fi
cp --remove-destination /etc/resolv.conf "$work/base/etc/"
# Whatever a package wants to start, it must not start it here.
printf '#!/bin/sh\nexit 101\n' >"$work/base/usr/sbin/policy-rc.d"
chmod 755 "$work/base/usr/sbin/policy-rc.d"
[[ -e $work/base/etc/mtab || -L $work/base/etc/mtab ]] || ln -s ../proc/self/mounts "$work/base/etc/mtab"

attach() { # SYSTEM: mounts what its programs need
  mount --rbind /dev "$work/$1/dev"
  mount --bind /sys "$work/$1/sys"
  mount -t proc proc "$work/$1/proc"
  mount -t tmpfs tmpfs "$work/$1/run"
}
run() { # SYSTEM COMMAND...
  local system=$1
  shift
  chroot "$work/$system" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
    DEBIAN_FRONTEND=noninteractive "$@"
}
# Installs packages without others that they only recommend.
install() { # SYSTEM PACKAGE...
  local system=$1
  shift
  run "$system" apt-get --quiet --quiet -o Dpkg::Use-Pty=0 install --yes --no-install-recommends "$@" >"$work/apt.log" 2>&1 ||
    fail "apt-get install $*: $(tail -n 20 "$work/apt.log")"
}

version=$(sed -n 's/^project(siltfs VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")
architecture=$(dpkg --print-architecture)
old=siltfs_$version-1~${release}_$architecture.deb
new=siltfs_$version-2~${release}_$architecture.deb
symbols=siltfs-dbgsym_$version-1~${release}_$architecture.deb
development=siltfs-dev_$version-1~${release}_$architecture.deb

make_packages() {
  step "$release: the packages are made from the source"
  cp -a "$work/base" "$work/maker"
  attach maker
  run maker apt-get --quiet --quiet update >"$work/apt.log" 2>&1 || fail "apt-get update: $(cat "$work/apt.log")"
  mkdir "$work/maker/siltfs"
  tar --directory="$source" --create --exclude=./build --exclude=./.git . | tar --directory="$work/maker/siltfs" --extract
  install maker lintian
  # If the caller has a compiler cache, it serves for the packages, too.
  if [[ -n ${CCACHE_DIR:-} && -d $CCACHE_DIR ]]; then
    install maker ccache
    mkdir "$work/maker/ccache"
    mount --bind "$CCACHE_DIR" "$work/maker/ccache"
  fi
  run maker ${CCACHE_DIR:+CCACHE_DIR=/ccache} ${DEB_CXXFLAGS_APPEND:+DEB_CXXFLAGS_APPEND="$DEB_CXXFLAGS_APPEND"} \
    /siltfs/tools/make-packages --revision "1~$release" /packages >"$work/make.log" 2>&1 ||
    fail "make-packages: $(tail -n 40 "$work/make.log")"
  sed -n '/^== Checking/,/^$/p' "$work/make.log"
  cp -r "$work/maker/packages" "$work/"

  step "$release: a program is built with siltfs-dev"
  install maker "/packages/$development"
  run maker sh -ec 'cp -r /usr/share/doc/siltfs-dev/examples/chunks /example
    cd /example
    cmake -B build >/dev/null && cmake --build build >/dev/null
    g++ -std=c++20 main.cc $(pkg-config --cflags --libs siltfs) -o with-pkg-config
    for example in build/example ./with-pkg-config; do
      $example put /chunks main.cc >names
      $example get /chunks <names | cmp - main.cc
    done' || fail "the example of siltfs-dev"
}
if [[ -n ${SILTFS_TEST_PACKAGES:-} ]]; then
  cp -r "$SILTFS_TEST_PACKAGES" "$work/packages"
else
  make_packages
fi
# The next version is the same package with a higher number.
dpkg-deb --raw-extract "$work/packages/$old" "$work/next"
sed -i "s/^Version: .*/Version: $version-2~$release/" "$work/next/DEBIAN/control"
dpkg-deb --root-owner-group --build -Zgzip "$work/next" "$work/packages/$new" >/dev/null
rm -r "$work/next"
ls "$work/packages"

# Below, grep reads all of its input, because readelf fails if its output is closed early.
dpkg-deb --extract "$work/packages/$old" "$work/program"
if [[ -n ${SILTFS_TEST_PACKAGES:-} && ! -f $work/packages/$symbols ]]; then
  echo "SKIPPED: $symbols is not among the packages"
else
  step "$release: the debug symbols belong to the program"
  dpkg-deb --extract "$work/packages/$symbols" "$work/symbols"
  id=$(readelf --notes "$work/program/usr/bin/siltfs" | sed -n 's/.*Build ID: //p')
  [[ -n $id ]] || fail "the program has no build id"
  symbols_file=$work/symbols/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
  [[ -f $symbols_file ]] || fail "there are no symbols for $id: $(find "$work/symbols" -type f)"
  readelf --sections "$symbols_file" 2>/dev/null | grep >/dev/null '\.debug_line' || fail "the symbols have no line numbers"
  ! readelf --sections "$work/program/usr/bin/siltfs" | grep >/dev/null '\.debug_info' || fail "the program has debug symbols"
  grep -q "^siltfs (= $version-1~$release)$" <<<"$(dpkg-deb --field "$work/packages/$symbols" Depends)" || fail "its dependency"
fi

step "$release: the program is hardened"
readelf --file-header "$work/program/usr/bin/siltfs" | grep >/dev/null 'Type: *DYN' || fail "no position-independent program"
readelf --program-headers "$work/program/usr/bin/siltfs" | grep >/dev/null GNU_RELRO || fail "no RELRO"
readelf --dynamic "$work/program/usr/bin/siltfs" | grep -E >/dev/null 'BIND_NOW|NOW' || fail "not bound at the start"
readelf --wide --symbols --dyn-syms "$work/program/usr/bin/siltfs" | grep >/dev/null __stack_chk_fail || fail "no stack protector"

step "$release: a fresh system with the dependencies"
mv "$work/base" "$work/user"
attach user
run user apt-get --quiet --quiet update >"$work/apt.log" 2>&1 || fail "apt-get update: $(cat "$work/apt.log")"
cp -r "$work/packages" "$work/user/"
run user apt-get --quiet --quiet -o Dpkg::Use-Pty=0 satisfy --yes --no-install-recommends \
  "$(dpkg-deb --field "$work/packages/$old" Depends), mount, logrotate" >"$work/apt.log" 2>&1 || fail "apt-get satisfy: $(cat "$work/apt.log")"
inventory() { # of all files but those that apt and dpkg keep for themselves, and those of this test
  (cd "$work/user" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log/apt -o -path ./var/lib/apt \
    -o -path ./packages -o -path ./srv -o -path ./mnt -o -path ./tmp -o -path ./var/log/dpkg.log -o -path ./var/lib/logrotate/status \) -prune -o -print | LC_ALL=C sort)
}
inventory >"$work/before"

step "$release: installation"
install user "/packages/$old"
[[ $(run user siltfs --version) == "siltfs $version" ]] || fail "$(run user siltfs --version)"
run user test -d /etc/siltfs -a -d /var/log/siltfs || fail "its directories are missing"

step "$release: the demonstration uses the package"
mkdir -p "$work/user/tmp/source/tools"
cp "$source/tools/quickstart" "$work/user/tmp/source/tools/"
run user /tmp/source/tools/quickstart --once --megabytes 32 >"$work/quickstart" 2>&1 || fail "tools/quickstart: $(cat "$work/quickstart")"
grep -q '^== Using the installed /usr/bin/siltfs' "$work/quickstart" || fail "tools/quickstart does not use the package"
sed -n '/^The disk holds/,/total/p' "$work/quickstart"
rm -r "$work/user/tmp/source"

step "$release: a mount by fstab(5)"
mnt=/mnt/silt
mounted() { grep -q " $work/user$mnt fuse.siltfs " /proc/self/mounts; }
run user mkdir "$mnt"
run user mkfs.siltfs /srv/store >/dev/null
echo "/srv/store $mnt siltfs defaults,nofail,x-systemd.requires-mounts-for=/srv,log=/var/log/siltfs/silt.log 0 0" >>"$work/user/etc/fstab"
run user mount -a
mounted || fail "mount -a has not mounted it: $(cat /proc/self/mounts)"
cp -a "$source/docs" "$work/user$mnt/"
diff -r "$source/docs" "$work/user$mnt/docs" || fail "the files differ"
pid=$(run user siltfs stat --json "$mnt" | jq -e .pid)
# The daemon is in this process namespace, because chroot makes none.
kill -0 "$pid" || fail "there is no daemon $pid"
cp -a "$source/docs" "$work/user$mnt/second"
run user siltfs sync "$mnt"

step "$release: the figures of the store"
bytes=$(find "$source/docs" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
run user siltfs stat --json "$mnt" >"$work/figures"
jq --exit-status --argjson bytes "$bytes" '.logical_bytes == 2 * $bytes and .dedup_ratio > 1.99 and .stored_bytes > 0 and .damaged_chunks == 0' \
  "$work/figures" >/dev/null || fail "the store has other figures than two copies of $bytes bytes: $(cat "$work/figures")"
run user siltfs stat "$mnt" | sed -n '/^Space/,/^Contents/p'

step "$release: an upgrade while the store is mounted"
exec 9>"$work/user$mnt/open"
echo before >&9
install user "/packages/$new"
[[ $(run user dpkg-query --show --showformat='${Version}' siltfs) == "$version-2~$release" ]] || fail "it was not upgraded"
grep -q "$mnt" "$work/apt.log" || fail "the upgrade does not name the mount: $(cat "$work/apt.log")"
kill -0 "$pid" || fail "the upgrade has ended the daemon"
[[ $(readlink "/proc/$pid/exe") == *' (deleted)' ]] || fail "the program was not replaced: $(readlink "/proc/$pid/exe")"
echo after >&9
exec 9>&-
[[ $(cat "$work/user$mnt/open") == $'before\nafter' ]] || fail "the open file differs"
diff -r "$source/docs" "$work/user$mnt/docs" || fail "the files differ"
[[ $(run user siltfs stat --json "$mnt" | jq -e .pid) == "$pid" ]] || fail "the new program does not reach the old daemon"
run user umount -c "$mnt" # as systemd calls it
! mounted || fail "still mounted"
! kill -0 "$pid" 2>/dev/null || [[ $(awk '/^State/ {print $2}' "/proc/$pid/status") == Z ]] || fail "umount returned before the daemon had ended"
run user fsck.siltfs -n --data /srv/store >/dev/null || fail "fsck"
run user mount -a
mounted || fail "not mounted again"
pid=$(run user siltfs stat --json "$mnt" | jq -e .pid)
[[ $(readlink "/proc/$pid/exe") == "$work/user/usr/bin/siltfs" || $(readlink "/proc/$pid/exe") == /usr/bin/siltfs ]] ||
  fail "the daemon runs $(readlink "/proc/$pid/exe")"

step "$release: the log is rotated while the daemon writes it"
log=$work/user/var/log/siltfs/silt.log
[[ -s $log ]] || fail "there is no log"
run user logrotate --force /etc/logrotate.d/siltfs || fail "logrotate"
[[ -s $log.1 && ! -s $log ]] || fail "the log was not rotated: $(ls -l "$work/user/var/log/siltfs")"
run user umount "$mnt"
grep -q "everything is durable" "$log" || fail "the daemon does not write the rotated log: $(cat "$log")"
! tr -d '\0' <"$log" | cmp --quiet - /dev/null || fail "the log is empty"
[[ $(tr -d '\0' <"$log" | wc -c) == $(stat --format=%s "$log") ]] || fail "the rotated log begins with a hole"

step "$release: removal leaves the mount and the store alone"
run user mount -a
pid=$(run user siltfs stat --json "$mnt" | jq -e .pid)
run user apt-get --quiet --quiet -o Dpkg::Use-Pty=0 remove --yes siltfs >"$work/apt.log" 2>&1 || fail "$(cat "$work/apt.log")"
[[ ! -e $work/user/usr/bin/siltfs ]] || fail "the program is still there"
kill -0 "$pid" || fail "the removal has ended the daemon"
diff -r "$source/docs" "$work/user$mnt/docs" || fail "the files differ"
echo removed >"$work/user$mnt/removed"
[[ -s $work/user/etc/logrotate.d/siltfs ]] || fail "a removal without purge has removed a configuration file"
run user umount "$mnt"
for ((i = 0; i < 600; ++i)); do
  kill -0 "$pid" 2>/dev/null && [[ $(awk '/^State/ {print $2}' "/proc/$pid/status") != Z ]] || break
  sleep 0.1
done

step "$release: purge removes all files of the package, and no other"
mkdir -p "$work/user/etc/siltfs" # a removal removes it if it is empty
echo mine >"$work/user/etc/siltfs/mine.conf"
run user apt-get --quiet --quiet -o Dpkg::Use-Pty=0 purge --yes siltfs >"$work/apt.log" 2>&1 || fail "$(cat "$work/apt.log")"
[[ $(cat "$work/user/etc/siltfs/mine.conf") == mine ]] || fail "purge has removed a file of the administrator"
rm -r "$work/user/etc/siltfs"
sed -i '/siltfs/d' "$work/user/etc/fstab"
inventory >"$work/after"
diff "$work/before" "$work/after" || fail "purge leaves files (>), or has removed files of others (<)"

step "$release: the store is as it was, and the services are valid"
install user "/packages/$new" systemd
run user fsck.siltfs -n --data /srv/store >/dev/null || fail "fsck"
run user siltfs mount /srv/store "$mnt"
diff -r "$source/docs" "$work/user$mnt/docs" || fail "the files differ"
[[ $(cat "$work/user$mnt/removed") == removed ]] || fail "a file written after the removal differs"
run user siltfs umount "$mnt"
units=/usr/lib/systemd/system
cp "$work/user/usr/share/doc/siltfs/examples/store.conf.example" "$work/user/etc/siltfs/test.conf"
run user systemd-analyze verify --man=no siltfs@test.service siltfs-scrub@test.service siltfs-scrub@test.timer siltfs-fsck@test.service siltfs-fsck@test.timer siltfs-failed@test.service siltfs-exporter.service >"$work/verify" 2>&1 ||
  fail "systemd-analyze verify: $(cat "$work/verify")"
! grep siltfs "$work/verify" || fail "systemd-analyze verify has warnings"
for unit in siltfs@.service:25 siltfs-scrub@.service:30 siltfs-fsck@.service:30; do
  run user systemd-analyze security --offline=true --threshold="${unit#*:}" --no-pager "$units/${unit%:*}" >"$work/security" 2>&1 ||
    fail "$unit is exposed: $(tail -n 3 "$work/security")"
  tail -n 1 "$work/security"
done
echo "all well"
