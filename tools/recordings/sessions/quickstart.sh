# The first command of README.
#
# title: siltfs: tools/quickstart
# columns: 80
# rows: 30
#
# shellcheck shell=bash
set -euo pipefail
source tools/recordings/typing.sh

run 'tools/quickstart'
prompt
pause 2
siltfs umount /srv/siltfs-quickstart-*/mount 2>/dev/null # shows no progress
