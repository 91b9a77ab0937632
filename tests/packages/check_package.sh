#!/usr/bin/env bash
# check_package.sh BUILD-DIRECTORY SOURCE-DIRECTORY VERSION
#
# Makes the Debian packages siltfs and siltfs-dev from what is built in the build directory, and checks
# their files, control fields and scripts. Compiles nothing. The debug symbols are left out, because their compression
# takes long; tests/packages/check_on_release.sh checks them.
set -euo pipefail

build=$1 source=$2 version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

make_package() { # CONFIGURATION OPTION...
  local configuration=$build/$1
  shift
  (umask 022 && cpack --config "$configuration" -B "$work" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip \
    -D CPACK_DEBIAN_PACKAGE_RELEASE=7 "$@") >"$work/log" 2>&1 || fail "cpack: $(cat "$work/log")"
}
make_package CPackConfig.cmake -D CPACK_DEBIAN_DEBUGINFO_PACKAGE=OFF -D CPACK_STRIP_FILES=ON
make_package CPackDevelopmentConfig.cmake
architecture=$(dpkg --print-architecture)
package=$work/siltfs_${version}-7_$architecture.deb
development=$work/siltfs-dev_${version}-7_$architecture.deb
for file in "$package" "$development"; do
  [[ -f $file ]] || fail "there is no $file: $(ls "$work")"
done

# The expected files. Directories are those of these files, and two empty ones.
{
  echo /usr/bin/siltfs
  echo /usr/libexec/siltfs/siltfs-exporter
  for link in mkfs mount umount fsck mount.fuse umount.fuse; do echo "/usr/sbin/$link.siltfs -> ../bin/siltfs"; done
  for page in siltfs mkfs.siltfs mount.siltfs umount.siltfs fsck.siltfs; do echo "/usr/share/man/man8/$page.8.gz"; done
  echo /usr/share/man/man5/siltfs.5.gz
  for page in mount umount; do echo "/usr/share/man/man8/$page.fuse.siltfs.8.gz -> $page.siltfs.8.gz"; done
  for unit in siltfs@.service siltfs-exporter.service siltfs-failed@.service siltfs-fsck@.service siltfs-fsck@.timer siltfs-scrub@.service siltfs-scrub@.timer; do echo "/usr/lib/systemd/system/$unit"; done
  for text in README.md SECURITY.md copyright changelog.gz changelog.Debian.gz examples/mail-hook examples/store.conf.example; do
    echo "/usr/share/doc/siltfs/$text"
  done
  (cd "$source/docs" && printf '/usr/share/doc/siltfs/docs/%s\n' ./*.md | sed 's|\./||')
  echo /usr/share/bash-completion/completions/siltfs
  echo /usr/share/zsh/vendor-completions/_siltfs
  echo /usr/share/fish/vendor_completions.d/siltfs.fish
  for file in siltfs-alerts.yml siltfs-dashboard.json; do echo "/usr/share/siltfs/monitoring/$file"; done
  echo /usr/share/lintian/overrides/siltfs
  echo /etc/logrotate.d/siltfs
  echo /etc/needrestart/conf.d/siltfs.conf
} | LC_ALL=C sort >"$work/expected"
tree=$work/tree
dpkg-deb --extract "$package" "$tree"
files_of() { (cd "$1" && find . ! -type d \( -type l -printf '/%P -> %l\n' -o -printf '/%P\n' \)) | LC_ALL=C sort; }
files_of "$tree" >"$work/files"
diff "$work/expected" "$work/files" || fail "the files differ from the expected ones (>: unexpected)"
[[ -d $tree/etc/siltfs/hooks.d && -d $tree/var/log/siltfs ]] || fail "/etc/siltfs/hooks.d or /var/log/siltfs is missing"

dpkg-deb --contents "$package" | awk '
  $2 != "root/root" { print "not owned by root: " $0; bad = 1 }
  $1 ~ /^d/ && $1 != "drwxr-xr-x" { print "mode of a directory: " $0; bad = 1 }
  $1 ~ /^-/ && $1 != ($6 == "./usr/bin/siltfs" || $6 == "./usr/libexec/siltfs/siltfs-exporter" ? "-rwxr-xr-x" : "-rw-r--r--") { print "mode of a file: " $0; bad = 1 }
  END { exit bad }' || fail "owners or modes"

field() { dpkg-deb --field "$package" "$1"; }
check_field() { # NAME VALUE
  [[ $(field "$1") == "$2" ]] || fail "the field $1 is \"$(field "$1")\" instead of \"$2\""
}
check_field Package siltfs
check_field Version "$version-7"
check_field Architecture "$architecture"
check_field Section admin
check_field Priority optional
check_field Homepage ''
[[ $(field Maintainer) =~ ^[^@\<]+\ \<[^@]+@[^@]+\>$ ]] || fail "Maintainer: $(field Maintainer)"
[[ $(field Description | head -n 1) =~ ^[a-z].{10,70}[a-zA-Z]$ ]] || fail "Description: $(field Description)"
(($(field Description | wc -l) > 5)) || fail "the description is short"
for library in libc6 libstdc++6 libfuse3- libmicrohttpd12 libssl3 libzstd1 fuse3; do
  grep -qF ", $library" <<<", $(field Depends)" || fail "it does not depend on $library: $(field Depends)"
done
# Later releases than this may lack an exact version of a library's package.
! grep -qE '\([=<]' <<<"$(field Depends)" || fail "exact dependencies: $(field Depends)"

dpkg-deb --control "$package" "$work/control"
(cd "$tree" && md5sum --check --quiet --strict "$work/control/md5sums") || fail "md5sums"
(($(wc -l <"$work/control/md5sums") == $(find "$tree" -type f | wc -l))) || fail "md5sums does not list every file"
LC_ALL=C sort "$work/control/conffiles" | diff - <(cd "$tree" && find etc -type f -printf '/%p\n' | LC_ALL=C sort) ||
  fail "conffiles are not the files in /etc"
for script in postinst postrm; do
  [[ $(stat --format=%a "$work/control/$script") == 755 ]] || fail "the mode of $script"
  sh -n "$work/control/$script" || fail "$script is no shell script"
  ! "$work/control/$script" frobnicate 2>/dev/null || fail "$script takes an unknown argument"
done
# Neither an upgrade nor a removal may end a daemon, unmount, or touch a store.
if grep -nE 'kill|umount|systemctl.*(stop|restart|try-)|invoke-rc|rm -r' "$work/control"/post*; then
  fail "a maintainer script ends something"
fi

# gzip's flags and time: no name and no time.
find "$tree" -name '*.gz' -type f | while read -r file; do
  [[ $(od -An -tx1 -j3 -N5 "$file" | tr -d ' ') == 0000000000 ]] || fail "$file has a name or a time"
  gzip --test "$file" || fail "$file"
done
cmp <(gzip --decompress --stdout "$tree/usr/share/man/man8/siltfs.8.gz") "$source/tools/man/siltfs.8" ||
  fail "the manual page differs"
gzip --decompress --stdout "$tree/usr/share/doc/siltfs/changelog.Debian.gz" | dpkg-parsechangelog --file - >"$work/changelog" ||
  fail "changelog.Debian.gz"
grep -qE "^Version: $version-[A-Za-z0-9.+~]+$" "$work/changelog" || fail "$(cat "$work/changelog")"
grep -q "^Maintainer: $(field Maintainer)$" "$work/changelog" || fail "$(cat "$work/changelog")"

[[ $("$tree/usr/bin/siltfs" --version) == "siltfs $version" ]] || fail "$("$tree/usr/bin/siltfs" --version)"
! readelf --sections "$tree/usr/bin/siltfs" | grep >/dev/null '\.debug_info' || fail "the program has debug symbols"

# Every setting of the example is one that the service reads, and the service needs no other.
units=$tree/usr/lib/systemd/system
for variable in STORE MOUNTPOINT OPTIONS; do
  grep -q "^$variable=" "$tree/usr/share/doc/siltfs/examples/store.conf.example" || fail "the example lacks $variable"
done
grep -ohE '\$\{[A-Z_]+\}' "$units"/*.service | sort -u | grep -v MONITOR_ | diff - <(printf '${LISTEN}\n${MOUNTPOINT}\n${OPTIONS}\n${STORE}\n') ||
  fail "the units use other variables"
# Stores, mountpoints and log files may be anywhere, so the daemon must see and may write almost all.
if grep -nE '^(ProtectSystem=strict|(ProtectHome|PrivateTmp|ProtectProc|ProcSubset|PrivateUsers|PrivateNetwork|(ReadOnly|Inaccessible|Exec|NoExec|Bind[A-Za-z]*)Paths|TemporaryFileSystem|RootDirectory|DynamicUser|MountFlags)=)' \
  "$units/siltfs@.service"; then
  fail "siltfs@.service would not reach each store"
fi
# The daemon has a mount namespace of its own. So commands that mount and unmount must leave it.
! grep -E '^Exec(StartPost|Stop|StopPost)=' "$units/siltfs@.service" | grep -vE '^Exec[A-Za-z]*=-?\+.*nsenter --target=1 --mount -- siltfs ' ||
  fail "commands of siltfs@.service do not reach the mount"
# Exposures are given in tenths.
if systemd-analyze --help 2>/dev/null | grep -q -- --threshold; then
  for unit in siltfs@.service:25 siltfs-scrub@.service:30 siltfs-fsck@.service:30 siltfs-exporter.service:30; do
    systemd-analyze security --offline=true --threshold="${unit#*:}" --no-pager "$units/${unit%:*}" >"$work/security" 2>&1 ||
      fail "${unit%:*} is exposed: $(tail -n 3 "$work/security")"
    sed -n '$s/.*Overall/Overall/p' "$work/security"
  done
else
  echo "SKIPPED, no systemd-analyze with --threshold: how well the services are protected"
fi

# The package siltfs-dev. Its libraries are in another folder if the prefix of the build is /usr.
dpkg-deb --extract "$development" "$work/development"
{
  echo /usr/include/siltfs/chunks.h
  for file in libsiltfs.a pkgconfig/siltfs.pc cmake/siltfs/siltfsConfig{,Version}.cmake; do echo "/usr/lib/$file"; done
  for file in copyright changelog.gz changelog.Debian.gz examples/chunks/{CMakeLists.txt,main.cc}; do
    echo "/usr/share/doc/siltfs-dev/$file"
  done
} | LC_ALL=C sort >"$work/expected"
files_of "$work/development" | sed -E 's|^/usr/lib/[a-z0-9_]+-linux-gnu/|/usr/lib/|' | LC_ALL=C sort >"$work/files"
diff "$work/expected" "$work/files" || fail "the files of siltfs-dev differ from the expected ones (>: unexpected)"
package=$development
check_field Package siltfs-dev
check_field Version "$version-7"
check_field Section libdevel
[[ -z $(dpkg-deb --ctrl-tarfile "$development" | tar --list | grep -vE '^\./($|control$|md5sums$)') ]] ||
  fail "siltfs-dev has scripts or configuration files"
for library in $(sed -n 's/^Requires: //p' "$(find "$work/development" -name siltfs.pc)" | tr -d ,); do
  grep -qE "lib(${library#lib}|ssl)-dev" <<<"$(field Depends)" || fail "siltfs-dev does not depend on $library: $(field Depends)"
done
echo "all well"
