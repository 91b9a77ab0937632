#!/bin/bash
# Runs the script of docs/backups.md as it is printed there, for some nights.
#
#   backup_script_test.sh SILTFS BACKUPS.MD
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

step "the script is in the document"
script=$work/nightly-backup
awk '/^    #!/ { on = 1 } /^[^ ]/ { on = 0 } on { sub(/^    /, ""); print }' "$2" >"$script"
(($(wc -l <"$script") > 10)) || fail "there is no script"
chmod +x "$script"
mkdir "$work/bin"
ln -s "$siltfs" "$work/bin/siltfs"
export PATH=$work/bin:$PATH
make_and_mount
make_source
# In this time zone it is noon, so no day ends during the test.
TZ=TST$((10#$(date -u +%H) - 12))
export TZ

# Sets the date for the script.
night() { # DATE
  printf '#!/bin/sh\necho %s\n' "$1" >"$work/bin/date"
  chmod +x "$work/bin/date"
}

step "two nights"
night 2026-11-25T02:00:00
"$script" "$mnt" "$src/tree" "$src/other" >"$work/out"
echo changed >"$src/tree/deep/new-file"
rm -r "$src/other"
mkdir "$src/other"
night 2026-11-26T02:00:00
"$script" "$mnt" "$src/tree" "$src/other" >"$work/out"
same_trees "$src/" "$mnt/latest$src/"
same_trees "$src/" "$mnt/.snapshots/2026-11-26T02:00:00/latest$src/"
grep -q "keep .*2026-11-26T02:00:00" "$work/out" || fail "prune says $(cat "$work/out")"
# By the clock of the daemon both snapshots are of today, so only the newer one is kept.
[[ $(ls "$mnt/.snapshots") == 2026-11-26T02:00:00 ]] || fail "there are $(ls "$mnt/.snapshots")"

step "a night without the sources leaves no snapshot"
night 2026-11-27T02:00:00
! "$script" "$mnt" "$work/missing" >"$work/out" 2>&1 || fail "the script succeeds"
[[ $(ls "$mnt/.snapshots") == 2026-11-26T02:00:00 ]] || fail "there are $(ls "$mnt/.snapshots")"
unmount_and_check
