# The first backups and restores of docs/guide.md.
#
# title: siltfs: backups and a restore
# columns: 108
# rows: 24
#
# shellcheck shell=bash
set -euo pipefail
source tools/recordings/typing.sh

# Something to back up.
mkdir -p /home/me/photos
seq 2000000 >/home/me/numbers.txt
head -c 50000000 /dev/urandom >/home/me/photos/one.jpg
cp /home/me/photos/one.jpg /home/me/photos/copy-of-one.jpg
siltfs() { command siltfs "$@" 2> >(grep -v 'mounts are faster' >&2); }

run 'siltfs mkfs /srv/store'
run 'siltfs mount /srv/store /mnt'
run 'rsync -aHAX --delete /home/ /mnt/home/'
run 'siltfs snapshot create /mnt monday'
pause 1
run 'rm /home/me/photos/copy-of-one.jpg; echo "a new line" >>/home/me/numbers.txt'
run 'rsync -aHAX --delete /home/ /mnt/home/'
run 'siltfs snapshot create /mnt tuesday'
run 'siltfs snapshot diff /mnt monday tuesday'
pause 2
run 'siltfs snapshot list /mnt'
pause 2
run 'cp /mnt/.snapshots/monday/home/me/photos/copy-of-one.jpg /home/me/photos/'
run 'siltfs export /mnt/.snapshots/monday/home /srv/restored'
pause 1
run 'siltfs umount /mnt'
prompt
pause 2
