# Sourced by the tests of import and export, after store_fixture.sh. Provides a tree with entries of
# all types and attributes, and compares trees.
#
# shellcheck shell=bash

src=$work/src

# Fails unless the two trees are equal, with every attribute.
same_trees() { # SOURCE... TARGET
  rsync -aHAXc --devices --specials --delete --dry-run -i "$@" >"$work/differences"
  [[ ! -s $work/differences ]] || fail "the trees differ: $(head "$work/differences")"
}
make_source() {
  mkdir -p "$src/tree/deep/deeper" "$src/tree/empty" "$src/other"
  noise 3000 small >"$src/tree/small"
  : >"$src/tree/nothing"
  noise 3M large >"$src/tree/deep/large"
  noise 100K middle >"$src/tree/deep/deeper/middle"
  for i in $(seq 300); do echo "file $i" >"$src/tree/deep/file-$i"; done
  truncate -s 3M "$src/tree/sparse"
  noise 5000 in-hole | dd of="$src/tree/sparse" bs=1M seek=1 conv=notrunc status=none
  truncate -s 20K "$src/tree/small-sparse"
  echo data | dd of="$src/tree/small-sparse" bs=8K seek=1 conv=notrunc status=none
  truncate -s 1M "$src/tree/hole"
  ln "$src/tree/small" "$src/tree/deep/small-again"
  ln "$src/tree/small" "$src/other/small-elsewhere"
  ln "$src/tree/deep/large" "$src/tree/large-again"
  ln -s small "$src/tree/link"
  ln -s /nowhere/at-all "$src/tree/dangling"
  mknod "$src/tree/null" c 1 3
  mknod "$src/tree/disk" b 259 1048575
  mkfifo "$src/tree/fifo"
  python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$src/tree/socket"
  ln "$src/tree/fifo" "$src/tree/fifo-again"
  chown 1234:4321 "$src/tree/deep/file-1" "$src/tree/deep/deeper"
  chown -h 77:88 "$src/tree/link"
  chmod 6755 "$src/tree/deep/file-2"
  chmod 1777 "$src/tree/empty"
  chmod 2750 "$src/tree/deep"
  chmod 000 "$src/tree/deep/file-3"
  touch -d '1999-12-31 23:59:59.123456789' "$src/tree/deep/file-4"
  touch -h -d '2001-02-03 04:05:06.000000007' "$src/tree/dangling"
  touch -d '1960-01-01 00:00:00.5' "$src/tree/deep/file-5"
  setfattr -n user.note -v 'a value' "$src/tree/small"
  setfattr -n user.on-directory -v x "$src/tree/deep"
  setfattr -n trusted.secret -v hidden "$src/tree/deep/file-6"
  setfattr -h -n trusted.of-link -v y "$src/tree/link"
  setcap cap_net_raw+ep "$src/tree/deep/file-7"
  setfacl -m u:1000:rw,g:2000:r "$src/tree/deep/file-8"
  setfacl -d -m u:1000:rwx "$src/tree/deep/deeper"
  noise 100 bytes >"$src/tree/"$'odd \xff\n name'
  touch -d '2011-11-11 11:11:11.111111111' "$src/tree" "$src/tree/deep" "$src/tree/empty"
}
