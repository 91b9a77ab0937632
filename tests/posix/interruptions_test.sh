#!/bin/bash
# Stops each long command of interruptions.table in the middle of its work (gate.cc), asks for its
# progress with SIGUSR1, and interrupts it with SIGINT. It must end with the exit code of an
# interruption and one sentence that says what is left, and the store must be sound.
#
#   interruptions_test.sh SILTFS GATE_LIBRARY
set -euo pipefail

siltfs=$1
library=$2
table=$(dirname "$0")/interruptions.table
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

least_rows=29
template=$disk/template # a store with snapshots and dead data, copied for each row
killed=$disk/killed     # the same with a daemon that was killed
crashed=$disk/crashed   # its copy
tree=$work/tree         # a source of imports
gate=$work/gate
# The gate would make the sanitizers complain that they are not loaded first.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
PATH=$(dirname "$siltfs"):$PATH

gated() { env LD_PRELOAD="$library" SILTFS_TEST_GATE="$gate" "$@"; }
mount_gated() { gated "$siltfs" mount "$store" "$mnt" -o "nogc,io_uring=off,log=$work/log"; }

step "a store with snapshots, dead data, and segments to recompress"
mkdir "$gate" "$tree"
noise 3M 1 >"$tree/file"
siltfs mkfs "$template" 2>/dev/null
siltfs mount "$template" "$mnt" -o "nogc,io_uring=off,log=$work/log" 2>/dev/null
noise 40M 2 >"$mnt/large"
noise 24M 3 >"$mnt/removed"
siltfs snapshot create "$mnt" one >/dev/null
noise 4M 4 >"$mnt/changed"
siltfs snapshot create "$mnt" two >/dev/null
siltfs snapshot delete "$mnt" one
rm "$mnt/removed"
siltfs sync "$mnt"
cp -a "$template" "$killed"
rm -f "$killed/control"
siltfs umount "$mnt"

# Waits until the condition holds. Fails if the command has ended before.
await() { # WHAT CONDITION...
  local what=$1
  shift
  until "$@"; do
    kill -0 "$pid" 2>/dev/null || fail "$command has ended before $what: $(cat "$work/err")"
    sleep 0.05
  done
}
lines() { grep -c "^siltfs $name: .*$progress" "$work/err" || true; }
has_lines() { (($(lines) >= $1)); }

# Whether SIGINT (bit 1) still waits for the process.
sigint_pends() {
  local pending
  pending=$(awk '$1 == "ShdPnd:" {print $2}' "/proc/$pid/status" 2>/dev/null) || return 1
  ((16#${pending:-0} & 2))
}

# The command is in `command`, its process in `pid`.
interrupt() {
  await "it reached the gate" test -e "$gate/reached"
  kill -USR1 "$pid"
  await "it showed its progress" has_lines 1
  kill -INT "$pid"
  # The command has taken SIGINT when it is no longer pending. Commands that wait for a daemon then end
  # at once, or tell it. Of the others, one more line of progress shows that they have dealt with it.
  for _ in $(seq 600); do sigint_pends || break; sleep 0.05; done
  if [[ $place == daemon ]]; then
    for _ in $(seq 40); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
  else
    local shown
    shown=$(lines)
    for _ in $(seq 40); do
      kill -USR1 "$pid" 2>/dev/null || break
      has_lines $((shown + 1)) && break
      sleep 0.05
    done
  fi
  rm "$gate/shut"
  code=0
  wait "$pid" || code=$?
}

check_row() {
  rm -rf "$store" "$crashed" "$work/out" "$gate"/*
  cp -a "$template" "$store"
  if [[ $command == *crashed* ]]; then cp -a "$killed" "$crashed"; fi
  case $place in
    daemon) mount_gated 2>/dev/null ;;
    client) siltfs mount "$store" "$mnt" -o "nogc,io_uring=off,log=$work/log" 2>/dev/null ;;
  esac
  # Something that is not durable, for commands that make everything durable.
  if [[ $place == daemon && $call == sync* ]]; then noise 1M 5 >"$mnt/new"; fi
  echo "$call" >"$gate/shut"
  local preload=()
  if [[ $place != daemon ]]; then preload=(LD_PRELOAD="$library" SILTFS_TEST_GATE="$gate"); fi
  # With job control, a command in the background does not ignore SIGINT, unless this script does.
  set -m
  eval "exec env --default-signal=INT \"\${preload[@]}\" $command" >"$work/output" 2>"$work/err" </dev/null &
  pid=$!
  set +m
  interrupt
  ((code == wanted)) || fail "$command ends with $code, not with $wanted: $(cat "$work/err")"
  local sentence
  sentence=$(grep -v "^siltfs $name: " "$work/err" | grep "^siltfs: " || true)
  if [[ $name == scrub && -z $sentence ]]; then sentence=$(tail -n 1 "$work/output"); fi
  [[ $sentence =~ $expected ]] || fail "$command does not say \"$expected\": $(cat "$work/err")"
  (($(wc -l <<<"$sentence") == 1)) || fail "$command says more than one sentence: $sentence"
  local checked=$store
  if [[ $command == *crashed* ]]; then checked=$crashed; fi
  if [[ $sentence == *"its daemon unmounts it again"* ]]; then
    flock --wait 60 "$checked/lock" true || fail "after $command: the daemon still has the store"
  fi
  if mounted; then siltfs umount "$mnt"; fi
  # The index is not complete, as the sentence says, until it is rebuilt.
  if [[ $name == "index rebuild" ]]; then siltfs index rebuild "$store" >/dev/null; fi
  siltfs fsck -n "$checked" >"$work/fsck" 2>&1 || fail "after $command: $(cat "$work/fsck")"
}

rows=0
while IFS= read -r row; do
  [[ -z $row || $row == \#* ]] && continue
  IFS='|' read -r place call command progress expected <<<"${row// | /|}"
  read -r _ name rest <<<"$command"
  case $name in snapshot | index | quota) read -r second _ <<<"$rest"; name="$name $second" ;; esac
  wanted=130
  if [[ $name == fsck ]]; then wanted=32; fi
  step "$place: $command"
  check_row
  rows=$((rows + 1))
done <"$table"
((rows >= least_rows)) || fail "the table has only $rows rows"

step "a request for the progress of all commands ends no daemon"
rm -rf "$store" "$gate"/*
cp -a "$template" "$store"
siltfs mount "$store" "$mnt" -o "nogc,io_uring=off,log=$work/log" 2>/dev/null
daemon=$(siltfs stat "$mnt" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')
kill -USR1 "$daemon"
siltfs sync "$mnt" || fail "the daemon does not answer any more"
siltfs umount "$mnt"

step "the daemon completes what goes on, and nothing is lost"
# A rollback of a mounted store goes on after the interruption of its command.
rm -rf "$store" "$gate"/*
cp -a "$template" "$store"
mount_gated 2>/dev/null
rm "$mnt/large"
siltfs sync "$mnt"
place=daemon call="sync /" name="snapshot rollback" progress=. command="siltfs snapshot rollback"
echo "$call" >"$gate/shut"
set -m
env --default-signal=INT \
  siltfs snapshot rollback "$mnt" two --keep-as before >"$work/output" 2>"$work/err" </dev/null &
pid=$!
set +m
interrupt
((code == 130)) || fail "the rollback ends with $code: $(cat "$work/err")"
grep -q "S13[01][92]" "$work/err" || fail "the rollback says: $(cat "$work/err")"
siltfs umount "$mnt"
siltfs fsck -n "$store" >"$work/fsck" 2>&1 || fail "after the rollback: $(cat "$work/fsck")"

step "a transfer that waits for its sender"
mount_gated 2>/dev/null
mkfifo "$work/stream"
sleep 1000 >"$work/stream" & # keeps the stream open, and sends nothing
sender=$!
set -m
env --default-signal=INT,HUP siltfs receive "$mnt" <"$work/stream" >"$work/output" 2>"$work/err" &
pid=$!
set +m
name=receive progress=MiB command="siltfs receive"
# SIGUSR1 would end the command before it looks at signals.
blocks_signals() { grep -q '^SigBlk:.*4203$' "/proc/$pid/status"; }
await "it looked at signals" blocks_signals
sleep_until_shown() { kill -USR1 "$pid" 2>/dev/null; sleep 0.2; has_lines 1; }
await "it showed its progress" sleep_until_shown
kill -INT "$pid"
code=0
wait "$pid" || code=$?
kill "$sender"
((code == 130)) || fail "the transfer ends with $code: $(cat "$work/err")"
grep -q "there is no new snapshot; what has arrived is kept.*S1328" "$work/err" || fail "the transfer says: $(cat "$work/err")"
siltfs umount "$mnt"
siltfs fsck -n "$store" >"$work/fsck" 2>&1 || fail "after the transfer: $(cat "$work/fsck")"
