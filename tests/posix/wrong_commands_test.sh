#!/bin/bash
# Runs the wrong commands of wrong_commands.table. Each must end with the exit code of the table and
# one sentence that names the cause and the remedy, and must write nothing to any store.
#
#   wrong_commands_test.sh SILTFS NEWER_SUPERBLOCK
set -euo pipefail

siltfs=$1
newer_superblock=$2
table=$(dirname "$0")/wrong_commands.table
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/other_user.sh
source "$(dirname "$0")/other_user.sh"

least_rows=80
PATH=$(dirname "$siltfs"):$PATH
# One of the commands could wait for something, so each has a limit.
for program in siltfs mkfs.siltfs mount.siltfs umount.siltfs fsck.siltfs; do
  eval "$program() { timeout 60 $(dirname "$siltfs")/$program \"\$@\"; }"
done
as_nobody() { timeout 60 "${other_user[@]}" "$@"; }

# The names that the commands of the table use.
# shellcheck disable=SC2034
{
  new=$disk/new             # does not exist, and may be made
  other=$disk/other         # does not exist
  missing=$disk/missing     # does not exist
  empty=$disk/empty         # an empty directory
  place=$disk/place         # an empty directory to mount on
  full=$disk/full           # a directory with a file
  file=$disk/file           # a file
  link=$disk/link           # a symbolic link that leads nowhere
  tree=$disk/tree           # some files, outside of any store
  live=$disk/live           # a store that is mounted on $mnt
  newer=$disk/newer         # a store that needs a newer siltfs
  damaged=$disk/damaged     # a store without a valid superblock
  torn=$disk/torn           # a store without metadata
  private=$disk/private     # a directory of root with a store
  crashed=$work/crashed     # the mountpoint of a killed daemon
  monday=$work/monday       # a mountpoint of the snapshot "mounted" of the live store
  medium=$disk/medium       # a read-only file system with a store
  full_disk=$disk/full-disk # a full file system
  small_disk=$disk/small    # a file system that is too small for a store
}

make_store() { # STORE; makes a store with some files and the snapshot monday
  siltfs mkfs "$1"
  siltfs mount "$1" "$mnt" -o "allow_other,nogc,io_uring=off,log=$work/log"
  cp -r "$tree" "$mnt/tree"
  cp "$file" "$mnt/file"
  siltfs snapshot create "$mnt" monday >/dev/null
}

step "the situations"
mkdir "$empty" "$place" "$full" "$tree" "$private" "$crashed" "$monday" "$medium" "$full_disk" "$small_disk"
chmod 755 "$disk"
chmod 700 "$private"
echo text | tee "$file" "$full/file" >"$tree/file"
ln -s nowhere "$link"
make_store "$store"
siltfs umount "$mnt"
cp -a "$store" "$newer"
"$newer_superblock" "$newer"
cp -a "$store" "$damaged"
for copy in 0 1; do head -c 4096 /dev/zero >"$damaged/superblock.$copy"; done
cp -a "$store" "$torn"
rm -r "$torn/meta" "$torn/meta.ledger"
cp -a "$store" "$private/store"
mount -t tmpfs -o size=200M siltfs-test "$medium"
cp -a "$store" "$medium/store"
mount -o remount,ro "$medium"
mount -t tmpfs -o size=100M siltfs-test "$full_disk"
head -c 100M /dev/zero >"$full_disk/file" 2>/dev/null || true
mount -t tmpfs -o size=1M siltfs-test "$small_disk"
cp -a "$store" "$disk/crashing"
siltfs mount "$disk/crashing" "$crashed" -o "nogc,io_uring=off,log=$work/log"
pid=$(siltfs stat --json "$crashed" | jq .pid)
kill -KILL "$pid"
while [[ -e /proc/$pid ]] && ! grep -qs "^State:.Z" "/proc/$pid/status"; do sleep 0.01; done
make_store "$live"
siltfs snapshot create "$mnt" mounted >/dev/null
siltfs mount "$live" "$monday" -o snapshot=mounted
siltfs sync "$mnt"

# Prints the state of everything that the commands could change. Of the live store, whose daemon
# may write its index and its logs at any time, this is the content and the commits. The reserve of
# a store has no content. A refused mkfs may make its directory and remove it again, which changes
# the times of the directory above.
state() {
  find "$disk" "$medium" "$full_disk" "$small_disk" -xdev \( -path "$live/*" -o -name reserve \) -prune -o \
    \( -path "$full_disk" -printf '%p %y %m\n' \) -o -printf '%p %y %m %U:%G %s %T@ %C@\n'
  find "$live/segments" "$live"/superblock.* -printf '%p %s %T@\n'
  find "$mnt" -printf '%p %y %m %U:%G %s %T@ %C@\n'
  siltfs snapshot list --no-sizes --json "$mnt"
}

# Reports that a row is not fulfilled; the test goes on with the next row.
wrong() { # WHAT
  echo "FAILED: $row: $1" >&2
  failures=$((failures + 1))
}

# Sets `said` to the command's message: one line on standard error, or for a plugin of monitoring
# systems one line on standard output.
read_message() {
  if [[ $command == *"siltfs check-health"* ]]; then
    said=$(sed 's/ *|.*//' "$work/out")
    return
  fi
  said=$(cat "$work/err")
  [[ $said == "siltfs: "* ]] || wrong "does not begin with siltfs: $said"
  # siltfs metrics reports a failure as a metric, too.
  [[ ! -s $work/out || $command == "siltfs metrics"* ]] || wrong "prints on standard output: $(cat "$work/out")"
}

check_row() {
  local code=0
  eval "$command" </dev/null >"$work/out" 2>"$work/err" || code=$?
  ((code == wanted)) || wrong "ends with $code: $(cat "$work/out" "$work/err")"
  read_message
  (($(wc -l <<<"$said") == 1)) || wrong "not one line: $said"
  [[ ! $said =~ \.$ && ! $said =~ [.!]\ [A-Z] ]] || wrong "not one sentence: $said"
  [[ $said =~ $pattern ]] || wrong "says: $said"
  state | sort >"$work/after"
  if ! cmp -s "$work/before" "$work/after"; then
    wrong "changes $(diff "$work/before" "$work/after")"
    mv "$work/after" "$work/before"
  fi
}

step "the commands"
rows=0
failures=0
state | sort >"$work/before"
while IFS= read -r row; do
  [[ -n $row && $row != "#"* ]] || continue
  wanted=${row%% | *}
  pattern=${row##* | }
  command=${row#* | }
  command=${command%" | $pattern"}
  check_row
  rows=$((rows + 1))
done <"$table"
((failures == 0)) || fail "$failures of $rows rows"
((rows >= least_rows)) || fail "there are $rows rows, not $least_rows"
echo "$rows commands"

step "the stores are as they were"
siltfs umount "$monday"
siltfs umount "$mnt"
siltfs umount "$crashed" 2>"$work/err"
for one in "$store" "$live" "$disk/crashing"; do siltfs fsck -n --data "$one" >"$work/out"; done
