#!/bin/bash
# Damage makes the daemon run hooks, once for each finding, and neither reads nor an unmount wait for
# a hook.
#
#   hooks_test.sh SILTFS MAIL-HOOK
set -euo pipefail

siltfs=$1
mail_hook=$(realpath "$2")
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

export SILTFS_HOOKS=$work/hooks.d
mkdir "$SILTFS_HOOKS"
runs=$work/runs # one directory for each run of the hook "record"
mkdir "$runs"
hook() { # NAME; the script is the input
  cat >"$SILTFS_HOOKS/$1"
  chmod 755 "$SILTFS_HOOKS/$1"
}
count() { find "$runs" -name done | wc -l; }
# Waits until the hook has run this often, and checks that it runs no more often for a moment.
await_runs() { # NUMBER
  local i
  for ((i = 0; i < 1200 && $(count) < $1; ++i)); do sleep 0.1; done
  (($(count) == $1)) || fail "$(count) runs of the hook instead of $1: $(cat "$runs"/*/env)"
}
value() { sed -n "s/^$2=//p" "$1/env"; } # RUN NAME
last_run() { find "$runs" -mindepth 1 -maxdepth 1 | sort | tail -1; }
# Changes a byte of the store's data at this part of a segment.
damage() { # SEGMENT PART OF 16
  local at byte
  at=$(($(stat -c %s "$1") * $2 / 16))
  byte=$(od -An -tu1 -j "$at" -N 1 "$1")
  printf '%b' "\\x$(printf %02x $(((byte + 1) % 256)))" | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}
scrub_finds_damage() {
  local code=0
  "$siltfs" scrub "$1" >"$work/out" || code=$?
  ((code == 13)) || fail "the scrub ends with $code: $(cat "$work/out")"
}

hook record <<END
#!/bin/bash
run=$runs/\$(printf %04d "\$(find $runs -mindepth 1 -maxdepth 1 | wc -l)")
mkdir "\$run"
env >"\$run/env"
ls -l /proc/self/fd >"\$run/descriptors"
pwd >"\$run/directory"
cat >"\$run/input"
touch "\$run/done"
END

step "a test of the hooks, which need no store"
"$siltfs" notify "$store"
await_runs 1
run=$(last_run)
[[ $(value "$run" SILTFS_EVENT) == test && $(value "$run" SILTFS_STORE) == "$store" ]] || fail "$(cat "$run/env")"
[[ $(cat "$run/directory") == / && ! -s $run/input ]] || fail "the directory or the input of a hook"
"$siltfs" notify --event=damage --count=3 --message=$'two\nlines' --mountpoint="$mnt" "$store"
run=$(last_run)
[[ $(value "$run" SILTFS_MESSAGE) == 'two\nlines' && $(value "$run" SILTFS_COUNT) == 3 ]] || fail "$(cat "$run/env")"
[[ $(value "$run" SILTFS_MOUNTPOINT) == "$mnt" && $(value "$run" SILTFS_EVENT) == damage ]] || fail "$(cat "$run/env")"

step "hooks that fail, hang, or that other users can change"
hook fails <<<$'#!/bin/sh\nexit 3'
hook hangs <<<$'#!/bin/sh\nsleep 1000 & wait'
hook weak <<<$'#!/bin/sh\ntouch '"$work/weak-ran"
chmod 777 "$SILTFS_HOOKS/weak"
hook old.dpkg-old <<<$'#!/bin/sh\ntouch '"$work/old-ran"
code=0
"$siltfs" notify --timeout 1 "$store" 2>"$work/err" || code=$?
((code == 1)) || fail "failing hooks: $code"
grep -q "fails: the hook ended with exit code 3" "$work/err" || fail "$(cat "$work/err")"
grep -q "hangs: the hook was killed, because it had run for 1 s" "$work/err" || fail "$(cat "$work/err")"
grep -q "weak: it is not run, because other users can change it" "$work/err" || fail "$(cat "$work/err")"
[[ ! -e $work/weak-ran && ! -e $work/old-ran ]] || fail "a hook was run that must not be run"
! pgrep -f "sleep 1000" >/dev/null || fail "a process of the killed hook goes on"
await_runs 3 # the hooks after those that fail run, too
rm "$SILTFS_HOOKS"/{fails,hangs,weak,old.dpkg-old}
chmod 777 "$SILTFS_HOOKS"
! "$siltfs" notify "$store" 2>"$work/err" || fail "hooks of an unsafe directory were run"
chmod 755 "$SILTFS_HOOKS"
await_runs 3

step "a scrub finds damage, and the daemon runs the hooks once"
"$siltfs" mkfs "$store"
mount_it
noise 60M one >"$mnt/one"
"$siltfs" sync "$mnt"
"$siltfs" umount "$mnt"
segment=$(find "$store/segments" -name '*.seg' -size +30M | sort | head -1)
damage "$segment" 8
mount_it
scrub_finds_damage "$mnt"
await_runs 4
run=$(last_run)
[[ $(value "$run" SILTFS_EVENT) == damage && $(value "$run" SILTFS_COUNT) == 1 ]] || fail "$(cat "$run/env")"
[[ $(value "$run" SILTFS_STORE) == "$store" && $(value "$run" SILTFS_MOUNTPOINT) == "$mnt" ]] || fail "$(cat "$run/env")"
value "$run" SILTFS_MESSAGE | grep -q "^1 more block is damaged; the first message is: $segment: chunks .* at offset" || fail "$(cat "$run/env")"
! grep -E 'fuse|socket|/(segments|meta|index)/' "$run/descriptors" || fail "a hook has the daemon's descriptors"

step "known damage is not reported again: by reads, by a scrub, or after another mount"
cat "$mnt/one" >/dev/null 2>&1 || true
scrub_finds_damage "$mnt"
"$siltfs" umount "$mnt"
mount_it
scrub_finds_damage "$mnt"
"$siltfs" umount "$mnt" # the daemon looks once more before it ends
await_runs 4

step "a read finds new damage"
damage "$segment" 3
mount_it
cat "$mnt/one" >/dev/null 2>&1 || true
await_runs 5
[[ $(value "$(last_run)" SILTFS_EVENT) == damage ]] || fail "$(cat "$(last_run)/env")"

step "neither reads, writes nor an unmount wait for a hook that hangs"
hook a-hangs <<END
#!/bin/bash
touch $work/hanging
until [[ -e $work/go ]]; do sleep 0.1; done
END
damage "$segment" 12
"$siltfs" umount "$mnt"
mount_it
scrub_finds_damage "$mnt"
for ((i = 0; i < 1200; ++i)); do [[ ! -e $work/hanging ]] || break; sleep 0.1; done
[[ -e $work/hanging ]] || fail "the hook was not started"
noise 1M two >"$mnt/two"
"$siltfs" sync "$mnt"
timeout 120 "$siltfs" umount "$mnt" || fail "the unmount waits for a hook"
await_runs 5
touch "$work/go"
await_runs 6 # the hook and those after it go on without the daemon
rm "$SILTFS_HOOKS/a-hangs"

step "a scrub of a store that is not mounted"
damage "$segment" 5
scrub_finds_damage "$store"
await_runs 7
[[ $(value "$(last_run)" SILTFS_MOUNTPOINT) == "" ]] || fail "$(cat "$(last_run)/env")"
scrub_finds_damage "$store"
await_runs 7

step "in a service of systemd the hooks run as a unit of their own"
mkdir "$work/bin"
cat >"$work/bin/systemd-run" <<END
#!/bin/bash
printf '%s\n' "\$@" >$work/systemd-run
END
chmod 755 "$work/bin/systemd-run"
damage "$segment" 10
INVOCATION_ID=1 PATH=$work/bin:$PATH mount_it
scrub_finds_damage "$mnt"
for ((i = 0; i < 1200; ++i)); do [[ ! -s $work/systemd-run ]] || break; sleep 0.1; done
grep -qx -- "--setenv=SILTFS_HOOKS=$SILTFS_HOOKS" "$work/systemd-run" || fail "$(cat "$work/systemd-run")"
grep -qx notify "$work/systemd-run" && grep -qx -- "--event=damage" "$work/systemd-run" || fail "$(cat "$work/systemd-run")"
tail -1 "$work/systemd-run" | grep -qx "$store" || fail "$(cat "$work/systemd-run")"
"$siltfs" umount "$mnt"
await_runs 7

step "a failure makes the store read-only"
mount_it
mv "$store/segments" "$store/away"
for i in {1..10}; do
  if ! noise 60M "failing $i" >"$mnt/failing" 2>/dev/null || ! "$siltfs" sync "$mnt" 2>/dev/null; then break; fi
done
await_runs 8
[[ $(value "$(last_run)" SILTFS_EVENT) == failure ]] || fail "$(cat "$(last_run)/env")"
value "$(last_run)" SILTFS_MESSAGE | grep -q "the store turned read-only" || fail "$(cat "$(last_run)/env")"
"$siltfs" umount "$mnt" 2>/dev/null || true
mv "$store/away" "$store/segments"

step "the example that sends mail"
cat >"$work/bin/sendmail" <<END
#!/bin/sh
printf '%s\n' "\$@" >$work/arguments
cat >$work/mail
END
chmod 755 "$work/bin/sendmail"
rm "$SILTFS_HOOKS/record"
sed "s|/usr/sbin/sendmail|$work/bin/sendmail|" "$mail_hook" | hook mail
"$siltfs" notify --event damage --message "1 more block is damaged" "$work/a"$'\n'"Bcc: b"
grep -qx "To: root" "$work/mail" || fail "$(cat "$work/mail")"
grep -qx "Subject: siltfs on $(uname -n): damage in $work/a Bcc: b" "$work/mail" || fail "$(cat "$work/mail")"
grep -qx "1 more block is damaged" "$work/mail" || fail "$(cat "$work/mail")"
! grep -q "^Bcc" "$work/mail" || fail "a path adds a header: $(cat "$work/mail")"
[[ $(tr '\n' ' ' <"$work/arguments") == "-oi -t " ]] || fail "$(cat "$work/arguments")"

echo "all well"
