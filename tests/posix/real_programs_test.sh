#!/bin/bash
# Typical uses of common programs: copy, archive, clone, sort, query. cp, tar and sha1sum are
# required. If another program is missing, its step is reported as skipped.
#
#   real_programs_test.sh SILTFS SOURCE
#
# SOURCE is a directory with a real tree, for instance this project's sources.
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
source=$(realpath "$2")

for program in cp tar sha1sum; do
  command -v "$program" >/dev/null || fail "there is no $program on this machine"
done
# with PROGRAM WHAT: succeeds if the program is installed; otherwise reports that WHAT is skipped.
with() {
  if command -v "$1" >/dev/null; then
    step "$1: $2"
  else
    echo "--- SKIPPED, there is no $1: $2"
    return 1
  fi
}
sums() { (cd "$1" && find . -type f -exec sha1sum {} + | LC_ALL=C sort -k2); }
same() {
  diff --recursive --no-dereference "$1" "$2" >"$work/diff" || fail "$1 and $2 differ: $(head "$work/diff")"
}

make_and_mount
tree=$work/tree
mkdir "$tree"
# Leaves out the repository's history and the builds.
tar -C "$source" --exclude=./.git --exclude=./build -cf - . | tar -C "$tree" -xf -
sums "$tree" >"$work/sums"
[[ -s $work/sums ]] || fail "there is nothing in $source"
cd "$mnt"

step "cp: copies onto the mount, within the mount, and back"
cp -a "$tree" copy
same "$tree" copy
cp -a copy second
same "$tree" second
cp -r --reflink=auto --sparse=always second third
same "$tree" third
cp -a third "$work/back"
same "$tree" "$work/back"

step "sha1sum: checks every file on the mount"
(cd third && sha1sum --check --quiet --strict "$work/sums") || fail "sha1sum --check"

step "tar: makes an archive on the mount and unpacks it there"
tar -cf archive.tar -C copy .
mkdir unpacked
tar -xpf archive.tar -C unpacked
same "$tree" unpacked
tar --compare -f archive.tar -C unpacked || fail "tar --compare"
truncate -s 20M holes
printf data | dd of=holes bs=1 seek=10000000 conv=notrunc status=none
tar --sparse -cf sparse.tar holes
mv holes holes.original
tar -xf sparse.tar
cmp holes holes.original || fail "a sparse file through tar"

step "dd, cat, head, tail: pieces make the whole"
head -c 3000000 /dev/urandom >whole
for i in 0 1 2; do dd if=whole of="part$i" bs=1000000 skip=$i count=1 status=none; done
cat part0 part1 part2 | cmp - whole || fail "the parts are not the whole"
for i in 2 0 1; do dd if="part$i" of=again bs=4k seek=$((i * 1000000)) oflag=seek_bytes conv=notrunc status=none; done
cmp again whole || fail "the parts in another order are not the whole"
tail -c 1000000 whole | cmp - part2 || fail "tail"

step "sort, sed -i, mv, rm: everyday changes"
find copy -type f | sort >list
[[ $(wc -l <list) == $(wc -l <"$work/sums") ]] || fail "find has lost files"
sed -i 's/^copy/moved/' list
mv copy moved
xargs -d '\n' cat <list >/dev/null || fail "files after mv"
rm -r second
[[ ! -e second ]] || fail "rm -r"

if with git "commit, clone, check, collect"; then
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org
  export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
  git init --quiet repository
  for i in 1 2 3; do
    mkdir -p "repository/d$i"
    cp -r "$tree"/[a-d]* "repository/d$i" 2>/dev/null || cp -r "$tree"/. "repository/d$i"
    echo "$i" >repository/number
    git -C repository add -A
    git -C repository commit --quiet -m "commit $i"
  done
  git clone --quiet --no-hardlinks repository clone
  git clone --quiet --local repository linked
  for directory in repository clone linked; do
    git -C "$directory" fsck --full --strict --no-progress >"$work/git" 2>&1 || fail "git fsck: $(cat "$work/git")"
    [[ -z $(git -C "$directory" status --porcelain) ]] || fail "git status of $directory"
    [[ $(git -C "$directory" log --oneline | wc -l) == 3 ]] || fail "git log of $directory"
  done
  git -C clone repack -a -d -q
  git -C clone gc --quiet --prune=now
  git -C clone checkout --quiet HEAD~2
  git -C clone fsck --full --no-progress >/dev/null 2>&1 || fail "git fsck after gc"
fi

if with rsync "copy, then only what changed"; then
  rsync -aHX --checksum "$tree/" synced/
  same "$tree" synced
  echo changed >>synced/"$(cd synced && find . -type f | sort | head -1)"
  [[ -n $(rsync -a --checksum --itemize-changes "$tree/" synced/) ]] || fail "rsync has missed a change"
  [[ -z $(rsync -a --checksum --itemize-changes "$tree/" synced/) ]] || fail "rsync finds changes where none are"
  rsync -a --inplace --no-whole-file "$tree/" synced/
  same "$tree" synced
fi

if with sqlite3 "transactions, with a rollback journal and with a write-ahead log"; then
  for mode in delete wal; do
    sqlite3 "$mode.db" >"$work/sql" <<SQL || fail "sqlite3 in mode $mode"
PRAGMA journal_mode=$mode;
CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000) INSERT INTO t SELECT i, hex(i*i) FROM n;
BEGIN; DELETE FROM t WHERE id%2=0; ROLLBACK;
BEGIN; UPDATE t SET text='changed' WHERE id%10=0; COMMIT;
VACUUM;
SQL
    [[ $(sqlite3 "$mode.db" 'PRAGMA integrity_check') == ok ]] || fail "integrity_check in mode $mode"
    [[ $(sqlite3 "$mode.db" "SELECT count(*) FROM t WHERE text='changed'") == 2000 ]] || fail "rows in mode $mode"
  done
fi

if with flock "one at a time"; then
  echo 0 >counter
  for _ in 1 2 3 4; do
    (for _ in $(seq 25); do flock lock bash -c 'echo $(($(<counter) + 1)) >counter'; done) &
  done
  wait
  [[ $(<counter) == 100 ]] || fail "the counter is $(<counter)"
fi

if with cc "compile, link and run"; then
  printf '#include <stdio.h>\nint main(void) { puts("made here"); return 0; }\n' >program.c
  cc -o program program.c
  [[ $(./program) == "made here" ]] || fail "the program"
fi

step "unmount, check, and look once more"
cd /
unmount_and_check
mount_it
same "$tree" "$mnt/third"
same "$tree" "$mnt/unpacked"
unmount_and_check
echo "all well"
