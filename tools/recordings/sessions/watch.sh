# siltfs stat --watch, while a tree is copied in twice, read, removed, and what is left is verified.
#
# title: siltfs: stat --watch
# columns: 80
# rows: 14
#
# shellcheck shell=bash
set -euo pipefail
source tools/recordings/typing.sh

siltfs mkfs /srv/store >/dev/null
siltfs mount /srv/store /mnt 2>/dev/null

# The load, for each part a few seconds. Copies that timeout(1) ends are as good as whole ones here.
load() {
  local copying=7
  if [[ -n ${RECORDING_IS_SHORT:-} ]]; then copying=2; fi
  set -e
  sleep 4
  mkdir /mnt/monday /mnt/tuesday
  timeout $copying cp -r /usr/lib /mnt/monday || true
  timeout $copying cp -r /usr/lib /mnt/tuesday || true
  siltfs export /mnt/monday /srv/restored
  pause 1
  rm -r /mnt/*/lib/[a-p]*
  siltfs gc /mnt
  siltfs scrub /mnt
  sleep 2
  siltfs umount /mnt # ends the view
}
load >/srv/load 2>&1 &

run 'siltfs stat --watch /mnt'
prompt
pause 2
wait $! || { cat /srv/load; exit 1; }
