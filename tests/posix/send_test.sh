#!/bin/bash
# Snapshots are copied between stores with the real program.
#
#   send_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/command_checks.sh
source "$(dirname "$0")/command_checks.sh"
# shellcheck source=tests/posix/copied_tree.sh
source "$(dirname "$0")/copied_tree.sh"

all=$mnt/.snapshots
store2=$disk/store2
mnt2=$work/mnt2
all2=$mnt2/.snapshots
stream=$work/stream
mkdir "$mnt2"

# Writes a stream to $stream; the exit code must be CODE. The document is in $work/json.
send() { # CODE ARGUMENT...
  local code=0
  timeout 120 "$siltfs" send "${@:2}" --json >"$stream" 2>"$work/json" || code=$?
  ((code == $1)) || fail "send ${*:2} ends with $code: $(cat "$work/json")"
}
# The same for failures, without --json: one sentence in $work/err, and no stream.
refused() { # CODE ARGUMENT...
  local code=0
  timeout 120 "$siltfs" send "${@:2}" >"$stream" 2>"$work/err" </dev/null || code=$?
  ((code == $1)) || fail "send ${*:2} ends with $code: $(cat "$work/err")"
  [[ ! -s $stream ]] || fail "send ${*:2} has written something"
}
receive() { run_json "$1" receive "${@:2}"; } # CODE ARGUMENT... <STREAM
on_terminal() { # COMMAND...
  python3 -c 'import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 1000), lambda fd: b"")))' \
    "$@"
}
mount2() { "$siltfs" mount "$store2" "$mnt2" -o "log=$work/log2"; }
snapshots_of() { "$siltfs" snapshot list --no-sizes --json "$1" | jq -r '.snapshots[].name'; } # STORE
check_store() { # STORE
  "$siltfs" fsck -n --data "$1" >"$work/fsck" 2>&1 || fail "fsck of $1: $(cat "$work/fsck")"
}

step "wrong arguments"
make_and_mount
"$siltfs" mkfs "$store2"
make_source
cp -a "$src/." "$mnt/"
"$siltfs" snapshot create "$mnt" one >/dev/null
for path in "$mnt" "$mnt/one" "$mnt/.snapshots" "$mnt/.snapshots/one/tree" one .snapshots \
  "$mnt/.snapshots/.."; do
  refused 2 "$path"
  says "is no snapshot"
done
refused 2 "$all/one" --base "$mnt/two"
says "is no snapshot"
refused 2 "$all/one" --base "$store2/.snapshots/zero"
says "not in the same store"
refused 10 "$work/.snapshots/one"
refused 2
refused 2 "$all/one" --resume
receive 2 </dev/null
receive 10 "$work" </dev/null
receive 2 --token --two-way "$store2"
receive 2 --token --abandon one "$store2"

step "a stream neither comes from a terminal nor goes to one"
code=0
on_terminal "$siltfs" send "$all/one" >"$work/err" || code=$?
((code == 2)) || fail "send on a terminal ends with $code: $(cat "$work/err")"
says "not written to a terminal"
code=0
on_terminal "$siltfs" receive "$store2" >"$work/err" || code=$?
((code == 2)) || fail "receive on a terminal ends with $code: $(cat "$work/err")"
says "not read from a terminal"

step "there is nothing to continue"
for place in "$mnt" "$store2"; do
  receive 10 --token "$place"
  receive 1 --abandon one "$place"
  says "no"
done

step "a missing snapshot is no missing store"
refused 1 "$all/missing"
says "missing"
refused 1 "$all/one" --base missing
says "missing"

step "a whole snapshot, from a mounted store to one that is not mounted"
send 0 "$all/one"
holds '.snapshot == "one" and .base == null and .records > 300 and .chunks > 0'
holds ".stream_bytes == $(stat -c %s "$stream") and .plain_bytes >= 3000000"
cp "$stream" "$work/one.stream"
receive 0 "$store2" <"$stream"
holds '.snapshot == "one" and .records > 300 and .chunks > 0 and .plain_bytes >= 3000000'
holds ".stream_bytes == $(stat -c %s "$stream")"
check_store "$store2"
mount2
same_trees "$all/one/" "$all2/one/"
[[ -z $(ls "$mnt2") ]] || fail "the files of the store have changed: $(ls "$mnt2")"

step "the same snapshot again, and a name that is taken"
receive 1 "$mnt2" <"$work/one.stream"
says "one"
"$siltfs" snapshot create "$mnt2" taken >/dev/null
run_json 0 snapshot list "$mnt2" --no-sizes
holds '[.snapshots[] | [.name, (.received_from != null)]] == [["one", true], ["taken", false]]'
# Own and received snapshots do not compete for a place.
run_json 0 snapshot prune "$mnt2" --keep-last 1 --dry-run
holds '([.kept[].name] | sort) == ["one", "taken"] and .deleted == []'
receive 1 "$mnt2" --name taken <"$work/one.stream"

step "only what differs, between mounted stores"
! stat "$all2/two" 2>/dev/null || fail "there is a snapshot already" # the kernel remembers that
echo more >>"$mnt/tree/deep/large"
rm -r "$mnt/other"
mkdir "$mnt/new"
noise 20K new >"$mnt/new/file"
"$siltfs" snapshot create "$mnt" two >/dev/null
send 0 "$all/two" --base one
holds '.base == "one" and .plain_bytes < 500000 and .records < 300'
receive 0 "$mnt2" <"$stream"
same_trees "$all/two/" "$all2/two/"
same_trees "$all/one/" "$all2/one/"
[[ $(ls "$all2") == $'one\ntaken\ntwo' ]] || fail "the listing is $(ls "$all2")"

step "bases that do not fit"
rm "$mnt/new/file"
"$siltfs" snapshot create "$mnt" three >/dev/null
refused 2 "$all/one" --base two
send 0 "$all/three" --base "$all/one"
receive 2 "$mnt2" <"$stream"
send 0 "$all/two" --base one
"$siltfs" mkfs "$disk/store3"
receive 1 "$disk/store3" <"$stream"
rm -r "$disk/store3"

step "another name, and stores that are not mounted"
"$siltfs" umount "$mnt2"
unmount_and_check
send 0 "$store/.snapshots/three" --base "$store/.snapshots/two"
receive 0 "$store2" --name drei <"$stream"
holds '.snapshot == "drei"'
[[ $(snapshots_of "$store2") == *drei* ]] || fail "there are $(snapshots_of "$store2")"
check_store "$store2"
mount_it
mount2
same_trees "$all/three/" "$all2/drei/"

step "a stream that ends early is continued from the token"
noise 4M four >"$mnt/four"
"$siltfs" snapshot create "$mnt" four >/dev/null
send 0 "$all/four" --base three
cp "$stream" "$work/four.stream"
size=$(stat -c %s "$stream")
for cut in 0 1 9 100 $((size / 3)) $((size / 2)) $((size - 1)); do
  receive 1 "$mnt2" < <(head -c "$cut" "$work/four.stream")
  says "ended too early"
  [[ ! -e $all2/four ]] || fail "there is a part of a snapshot"
done
receive 0 --token "$mnt2"
holds '.name == "four" and .token != "" and .running == false'
token=$("$siltfs" receive --token "$mnt2")
"$siltfs" umount "$mnt2"
[[ $("$siltfs" receive --token --name four "$store2") == "$token" ]] || fail "the token is lost"
check_store "$store2"
refused 2 "$all/three" --resume "$token"
refused 2 "$all/four" --base three --resume nonsense
send 0 "$all/four" --base three --resume "$token"
holds ".stream_bytes < $size"
receive 0 "$store2" <"$stream"
receive 10 --token "$store2"
check_store "$store2"
mount2
same_trees "$all/four/" "$all2/four/"

step "what has arrived can be discarded"
noise 1M five >"$mnt/five"
"$siltfs" snapshot create "$mnt" five >/dev/null
send 0 "$all/five" --base four
receive 1 "$mnt2" < <(head -c 600000 "$stream")
receive 0 --token "$mnt2"
receive 1 --abandon other "$mnt2"
receive 0 --abandon five "$mnt2"
receive 10 --token "$mnt2"
"$siltfs" gc "$mnt2" >/dev/null
receive 0 "$mnt2" <"$stream"

step "a two-way transfer sends no chunk that the receiver has"
mkfifo "$work/answers"
both_ways() { # SNAPSHOT RECEIVER [SEND OPTION...]
  timeout 120 "$siltfs" send "$1" --two-way --json "${@:3}" <"$work/answers" 2>"$work/sent" |
    timeout 120 "$siltfs" receive "$2" --two-way --json >"$work/answers" 2>"$work/json"
}
noise 30K seven >"$mnt/seven"
"$siltfs" snapshot create "$mnt" six >/dev/null
# Without a base, as when the receiver has deleted the common snapshots.
both_ways "$all/six" "$mnt2" || fail "$(cat "$work/sent" "$work/json")"
holds '.snapshot == "six" and .records > 300 and .plain_bytes < 500000'
[[ $(jq '.plain_bytes < 500000 and .stream_bytes < 500000' "$work/sent") == true ]] ||
  fail "sent: $(cat "$work/sent")"
same_trees "$all/six/" "$all2/six/"

step "a two-way transfer that ended early is continued by itself"
noise 6M eight >"$mnt/eight"
"$siltfs" snapshot create "$mnt" eight >/dev/null
# Unlike head, this passes on at once what it has read.
cat >"$work/first-bytes" <<'END'
import os, sys
rest = int(sys.argv[1])
while rest > 0 and (some := os.read(0, min(rest, 65536))):
    rest -= os.write(1, some)
END
! timeout 120 "$siltfs" send "$all/eight" --base six --two-way <"$work/answers" 2>"$work/err" |
  python3 "$work/first-bytes" 3000000 |
  timeout 120 "$siltfs" receive "$mnt2" --two-way >"$work/answers" 2>"$work/err" ||
  fail "a cut stream is complete"
[[ ! -e $all2/eight ]] || fail "there is a part of a snapshot"
both_ways "$all/eight" "$mnt2" --base six || fail "$(cat "$work/sent" "$work/json")"
[[ $(jq '.stream_bytes < 5000000' "$work/sent") == true ]] || fail "sent: $(cat "$work/sent")"
same_trees "$all/eight/" "$all2/eight/"

step "a refusal reaches both sides"
code=0
both_ways "$all/eight" "$mnt2" --base six || code=$?
((code == 1)) || fail "the snapshot is received again: $code"
grep -q error "$work/sent" || fail "the sender says $(cat "$work/sent")"

step "hostile bytes"
before=$(ls "$all2")
receive 13 "$mnt2" --name hostile < <(noise 100K hostile)
receive 13 "$mnt2" --name hostile <<<"hello"
receive 12 "$mnt2" --name hostile < <(printf 'SILTSNAP\xff\xff' && noise 1000 x)
"$siltfs" mkfs "$disk/store4"
size=$(stat -c %s "$work/one.stream")
for at in 12 30 100 $((size / 4)) $((size / 2)) $((size - 10)); do
  cp "$work/one.stream" "$stream"
  byte=$(od -An -tu1 -j "$at" -N 1 "$stream")
  printf '%b' "\\x$(printf %x $((byte ^ 16)))" | dd of="$stream" bs=1 seek="$at" conv=notrunc status=none
  code=0
  timeout 120 "$siltfs" receive "$disk/store4" <"$stream" >/dev/null 2>"$work/err" || code=$?
  ((code == 13 || code == 1)) || fail "a flip at $at ends with $code: $(cat "$work/err")"
  [[ -z $(snapshots_of "$disk/store4") ]] || fail "a flip at $at: there is a snapshot"
done
[[ $(ls "$all2") == "$before" ]] || fail "the listing is $(ls "$all2")"
check_store "$disk/store4"
rm -r "$disk/store4"

step "an output that cannot be written"
code=0
"$siltfs" send "$all/eight" 2>"$work/err" >/dev/full || code=$?
((code == 1)) || fail "a full output ends with $code"
says "No space left"
{ code=0; "$siltfs" send "$all/eight" 2>"$work/err" || code=$?; echo $code >"$work/code"; } | head -c 10 >/dev/null
[[ $(cat "$work/code") == 1 ]] || fail "a closed pipe ends with $(cat "$work/code")"
says "Broken pipe"

step "a signal ends both commands"
# Before that a signal ends the process without a message.
blocks_sigterm() { # PROCESS
  [[ $(readlink "/proc/$1/exe") == "$siltfs" ]] &&
    ((0x$(awk '/^SigBlk:/ { print $2 }' "/proc/$1/status") & 1 << 14))
}
mkfifo "$work/pipe"
for command in "send $all/eight" "send $all/eight --base six" "receive $mnt2"; do
  exec 5<>"$work/pipe"
  # shellcheck disable=SC2086 # the command has several words
  case $command in
  send*) "$siltfs" $command >&5 2>"$work/err" & ;;
  *) "$siltfs" $command <&5 >/dev/null 2>"$work/err" & ;;
  esac
  process=$!
  until blocks_sigterm "$process"; do :; done
  kill -TERM "$process"
  code=0
  wait "$process" || code=$?
  ((code == 130)) || fail "$command ends with $code: $(cat "$work/err")"
  exec 5<&-
done

step "an unmount ends a transfer"
exec 5<>"$work/pipe"
"$siltfs" receive "$mnt2" <&5 >/dev/null 2>"$work/err" &
process=$!
# The third thread copies the input to the daemon.
until (($(find "/proc/$process/task" -mindepth 1 -maxdepth 1 | wc -l) == 3)); do :; done
"$siltfs" umount "$mnt2"
code=0
wait "$process" || code=$?
((code == 1)) || fail "receive ends with $code: $(cat "$work/err")"
exec 5<&-
check_store "$store2"
unmount_and_check
