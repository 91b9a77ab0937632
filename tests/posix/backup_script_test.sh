#!/bin/bash
# Runs the scripts of docs/backups.md as they are printed there, for some nights.
#
#   backup_script_test.sh SILTFS BACKUPS.MD
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

step "the scripts are in the document"
script=$work/nightly-backup
copies=$work/send-backups
for name in nightly-backup send-backups; do
  # The comment in the second line begins with the name and the arguments.
  awk -v name="$name" '/^    #!/ { text = ""; on = 1 } /^[^ ]/ { if (on && keep) printf "%s", text; on = keep = 0 }
    on { sub(/^    /, ""); text = text $0 "\n"; if ($2 == name) keep = 1 }' "$2" >"$work/$name"
  (($(wc -l <"$work/$name") > 10)) || fail "there is no $name"
  chmod +x "$work/$name"
done
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

step "copies on another machine"
cat >"$work/bin/ssh" <<'END'
#!/bin/bash
# Stands for ssh(1): runs the command here. If the file "cut" is there, the connection of the next
# receive breaks early.
shift
cut=$(dirname "$0")/cut
if [[ "$*" == "siltfs receive "* && "$*" != *--token* && -e $cut ]]; then
  rm "$cut"
  head -c 30000 | bash -c "$*"
else
  bash -c "$*"
fi
END
printf '#!/bin/sh\necho "slept $1" >>"%s/slept"\n' "$work" >"$work/bin/sleep"
chmod +x "$work/bin/ssh" "$work/bin/sleep"
store2=$disk/store2
mnt2=$work/mnt2
mkdir "$mnt2"
siltfs mkfs "$store2"
"$copies" "$mnt" host "$store2" >"$work/out"
# The next one is sent over a connection that breaks.
noise 300K more >"$mnt/latest/more"
siltfs snapshot create "$mnt" 2026-11-28T02:00:00 >/dev/null
touch "$work/bin/cut"
siltfs mount "$store2" "$mnt2" -o "log=$work/log2"
"$copies" "$mnt" host "$mnt2" >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
[[ ! -e $work/bin/cut && $(cat "$work/slept") == "slept 60" ]] || fail "no connection broke"
same_trees "$mnt/latest/" "$mnt2/.snapshots/2026-11-28T02:00:00/latest/"
"$copies" "$mnt" host "$mnt2" >"$work/out"
[[ ! -s $work/out ]] || fail "something was sent again: $(cat "$work/out")"
siltfs umount "$mnt2"
siltfs fsck -n --data "$store2" >"$work/fsck" || fail "fsck of the copy: $(cat "$work/fsck")"
unmount_and_check
