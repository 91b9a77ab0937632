#!/bin/bash
# Runs the commands of a document as they are printed there (run_document.py).
#
#   document_test.sh SILTFS DOCUMENT [PROGRAM...]
#
# /srv, /mnt, /home and the home directory of root are empty directories of the test, /etc/fstab is an
# empty file, and `ssh other` runs its command here. If one of the programs is not installed, the test
# is skipped (exit code 77).
set -euo pipefail

siltfs=$1
document=$(realpath "$2")
for program in "${@:3}"; do
  command -v "$program" >/dev/null || { echo "SKIPPED: $program is not installed" >&2; exit 77; }
done
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/system_helpers.sh
source "$(dirname "$0")/system_helpers.sh"

touch "$work/fstab"
mount --bind "$work/fstab" /etc/fstab
for directory in /srv /mnt /home /root; do
  mkdir "$work/own-${directory#/}"
  mount --bind "$work/own-${directory#/}" "$directory"
done
mkdir "$work/bin"
ln -s "$siltfs" "$work/bin/siltfs"
cat >"$work/bin/ssh" <<'END_OF_SSH'
#!/bin/bash
# Stands for ssh(1): runs the command here.
[[ $1 == other ]] || exit 255
shift
exec bash -c "$*"
END_OF_SSH
chmod +x "$work/bin/ssh"
export PATH=$work/bin:$PATH HOME=/root LC_ALL=C.UTF-8
unset SILTFS_TEST_CONTAINED
mounts() { awk '$2 ~ "^/(srv|mnt|home|root)/" { print $2 }' /proc/self/mounts | sort; }
mounts >"$work/mounts"
code=0
"$(dirname "$0")/run_document.py" "$document" || code=$?
cd /
# The document unmounts what it has mounted; after a failure this test does.
for target in $(comm -13 "$work/mounts" <(mounts) | sort -r); do umount --lazy "$target"; done
exit $code
