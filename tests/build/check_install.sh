#!/usr/bin/env bash
# check_install.sh BUILD-DIRECTORY: checks that `cmake --install` puts the program, its other names,
# the manual pages, the completions and the files for monitoring where Debian expects them, and that
# the installed program runs.
set -euo pipefail

prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix" >/dev/null

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

for name in mkfs mount umount fsck mount.fuse umount.fuse; do
  link=$prefix/sbin/$name.siltfs
  [[ -L $link && -x $link ]] || fail "sbin/$name.siltfs is no link to a program"
done
for file in share/man/man8/{siltfs,mkfs.siltfs,mount.siltfs,umount.siltfs,fsck.siltfs}.8 \
  share/man/man5/siltfs.5 share/zsh/vendor-completions/_siltfs share/fish/vendor_completions.d/siltfs.fish \
  share/man/man8/{mount,umount}.fuse.siltfs.8 lib/systemd/system/{siltfs@,siltfs-exporter,siltfs-failed@,siltfs-fsck@,siltfs-scrub@}.service lib/systemd/system/siltfs-{fsck,scrub}@.timer \
  share/bash-completion/completions/siltfs share/doc/siltfs/LICENSE share/doc/siltfs/docs/installing.md \
  share/siltfs/monitoring/{siltfs-alerts.yml,siltfs-dashboard.json} include/siltfs/chunks.h; do
  [[ -f $prefix/$file ]] || fail "$file is missing"
done
# Files of a Debian package are not installed: their places are outside of the prefix.
[[ ! -e $prefix/etc && ! -e $prefix/share/lintian ]] || fail "files of a Debian package are installed"
"$prefix/bin/siltfs" --version | grep -q '^siltfs ' || fail "siltfs --version does not name the program"
code=0
"$prefix/bin/siltfs" metrics --listen nowhere 2>"$prefix/err" || code=$?
((code == 2)) && grep -q 'is no address to listen on' "$prefix/err" || fail "the exporter is not found: $(cat "$prefix/err")"
"$prefix/sbin/mkfs.siltfs" "$prefix/store" >/dev/null || fail "mkfs.siltfs makes no store"
