# Sourced by store_fixture.sh. In the place of the program comes a script that keeps the segments of each
# store in a bucket of a service that is started here (s3_service.sh).
#
# shellcheck shell=bash

server=$(dirname "${BASH_SOURCE[0]}")/../support/s3_server.py
# shellcheck source=tests/posix/s3_service.sh
source "$(dirname "${BASH_SOURCE[0]}")/s3_service.sh"
if [[ -n ${SILTFS_TEST_BUCKET_FAULTS:-} ]]; then
  control "{\"random\": 1, \"rate\": $SILTFS_TEST_BUCKET_FAULTS}"
fi
# Each store has a prefix of its own. mkfs gives up if it cannot know whether a request took effect,
# and leaves objects there.
mkdir "$work/program"
cat >"$work/program/siltfs" <<END
#!/bin/bash
if [[ \$1 == mkfs && " \$* " != *" --bucket "* ]]; then
  for attempt in 1 2 3 4 5; do
    code=0
    "$siltfs" "\$@" --bucket "s3://bucket/\$\$-\$attempt-\$RANDOM" --endpoint "$endpoint" \
      --cache 256M 2>"$work/mkfs" || code=\$?
    grep -q "it is unknown whether" "$work/mkfs" || break
  done
  cat "$work/mkfs" >&2
  exit \$code
fi
exec "$siltfs" "\$@"
END
chmod 755 "$work/program" "$work/program/siltfs"
# mount(8) and umount(8) call these.
ln -s "$(dirname "$siltfs")"/*mount*.siltfs "$work/program"
siltfs=$work/program/siltfs
