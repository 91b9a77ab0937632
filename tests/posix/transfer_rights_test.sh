#!/bin/bash
# A user other than the superuser may import, export and measure exactly what the kernel lets this
# user write and read: by permission bits, by access control lists, and by supplementary groups.
#
#   transfer_rights_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

user=65534
as_user() { setpriv --reuid $user --regid $user --groups 4321,4322 "$@"; }
errors() { jq -e .errors "$work/json"; }
# On some machines only the superuser may open /dev/fuse. In this mount namespace every user may.
let_users_mount() {
  mkdir "$work/devices"
  mount -t tmpfs -o dev siltfs-test "$work/devices"
  mknod --mode 666 "$work/devices/fuse" c 10 229
  chmod 666 "$work/devices/fuse"
  mount --bind "$work/devices/fuse" /dev/fuse
}

declare -A expected=() # what the kernel should allow: `yes` or `no` for each path
set_rights() { # PATH OWNER MODE [ACL]
  chown "$2" "$1"
  chmod "$3" "$1"
  [[ -z ${4:-} ]] || setfacl --no-mask -m "$4" "$1"
}
target() { # yes|no NAME OWNER MODE [ACL]: a directory that the user imports into
  expected[write/$2]=$1
  mkdir "$mnt/write/$2"
  set_rights "$mnt/write/$2" "${@:3}"
}
file() { # yes|no NAME OWNER MODE [ACL]: a file that the user exports
  expected[read/$2]=$1
  noise 1000 "$2" >"$mnt/read/$2"
  set_rights "$mnt/read/$2" "${@:3}"
}
directory() { # yes|no NAME OWNER MODE [ACL]: a directory with a file that the user may read
  expected[read/$2/file]=$1
  mkdir "$mnt/read/$2"
  noise 1000 "$2" >"$mnt/read/$2/file"
  set_rights "$mnt/read/$2" "${@:3}"
}
same_as_kernel() { # PATH KERNEL SILTFS
  [[ $2 == "${expected[$1]}" ]] || fail "$1: the kernel says $2, so the test is wrong"
  [[ $3 == "$2" ]] || fail "$1: the kernel says $2, and siltfs $3: $(cat "$work/json" "$work/err")"
}

step "the superuser makes a tree with rights of all kinds"
make_and_mount
mkdir "$mnt/write" "$mnt/read"
chmod 755 "$mnt" "$mnt/write" "$mnt/read"
target no others-may-not 0:0 755
target yes others-may 0:0 777
target yes others-may-not-list 0:0 733
target yes own $user:0 700
target no own-denied $user:0 577
target yes by-group 0:4322 770
target no denied-by-group 0:4322 707
target no other-group 0:4323 770
target yes user-entry 0:0 700 "u:$user:rwx,m::rwx"
target no user-entry-denies 0:0 777 "u:$user:r-x,m::rwx"
target no user-entry-without-search 0:0 777 "u:$user:rw-,m::rwx"
target no user-entry-and-mask 0:0 700 "u:$user:rwx,m::r-x"
target no another-user-entry 0:0 700 "u:1234:rwx,m::rwx"
target no own-entry-before-user-entry $user:0 500 "u:$user:rwx,m::rwx"
target yes user-entry-without-list 0:0 700 "u:$user:-wx,m::rwx"
target yes group-entry 0:0 700 "g:4321:rwx,m::rwx"
target yes primary-group-entry 0:0 700 "g:$user:rwx,m::rwx"
target no another-group-entry 0:0 700 "g:4323:rwx,m::rwx"
target no group-entry-denies 0:0 707 "g:4321:r-x,m::rwx"
target no group-entry-and-mask 0:0 707 "g:4321:rwx,m::r-x"
target yes one-of-two-groups 0:0 700 "g:4321:r-x,g:4322:rwx,m::rwx"
target no two-groups-together 0:0 700 "g:4321:r-x,g:4322:-w-,m::rwx"
target no owning-and-named-group-together 0:4321 700 "g::r-x,g:4322:-w-,m::rwx"
target no user-entry-before-groups 0:4322 770 "u:$user:r-x,g:4321:rwx,m::rwx"
target yes not-in-list-others-may 0:0 707 "u:1234:---,m::rwx"
# The kernel ignores a list if the group's permission bits, which have its mask, are 0.
target yes mask-of-nothing 0:0 707 "u:$user:---,g:4321:---,m::---"
target no mask-of-nothing-others-may-not 0:0 700 "u:$user:rwx,m::---"
file yes open 0:0 644
file no closed 0:0 640
file yes own $user:0 400
file yes by-group 0:4321 640
file no denied-by-group 0:4321 604
file yes user-entry 0:0 600 "u:$user:r--,m::r--"
file no user-entry-denies 0:0 644 "u:$user:---,m::r--"
file no user-entry-and-mask 0:0 604 "u:$user:rw-,m::-w-"
file yes group-entry 0:0 600 "g:4322:r--,m::r--"
file no group-entry-denies 0:0 644 "g:4322:---,m::r--"
directory yes open-directory 0:0 755
directory no closed-directory 0:0 750
directory no list-only 0:0 744
directory no search-only 0:0 711
directory yes directory-user-entry 0:0 700 "u:$user:r-x,m::r-x"
directory no directory-list-entry 0:0 755 "u:$user:r--,m::r-x"
directory no directory-search-entry 0:0 755 "u:$user:--x,m::r-x"
directory yes directory-group-entry 0:0 700 "g:4321:r-x,m::r-x"
# The kernel asks for the right to search and for the right to list separately.
directory yes directory-groups-together 0:0 700 "g:4321:r--,g:4322:--x,m::r-x"
mkdir "$mnt/sticky"
echo of root >"$mnt/sticky/of-root"
echo of user >"$mnt/sticky/of-user"
chown $user "$mnt/sticky/of-user"
chmod 1777 "$mnt/sticky"
unmount_and_check
chown -R $user:$user "$disk"

step "the user may import into the same directories as the kernel allows"
let_users_mount
chown $user "$mnt" "$disk"
as_user "$siltfs" mount "$store" "$mnt"
mkdir -p "$work/src/tree"
noise 100 small >"$work/src/tree/small"
noise 600K large >"$work/src/tree/large"
ln -s small "$work/src/tree/link"
chmod -R a+rX "$work/src"
for path in "${!expected[@]}"; do
  [[ $path == write/* ]] || continue
  kernel=yes
  as_user mkdir "$mnt/$path/probe" 2>/dev/null || kernel=no
  code=0
  # Both files of the directory and the directory itself as entries of the target.
  as_user "$siltfs" import --json "$work/src/tree" "$work/src/tree/small" "$work/src/tree/large" \
    "$work/src/tree/link" "$mnt/$path" >"$work/json" 2>"$work/err" || code=$?
  case $code in
    0) made=yes ;;
    1 | 3) made=no ;;
    *) fail "$path: the import ends with $code: $(cat "$work/err")" ;;
  esac
  same_as_kernel "$path" $kernel $made
  if [[ $made == no ]]; then
    grep -q 'denied' "$work/err" || fail "$path: another cause: $(cat "$work/err")"
    [[ $code == 1 || $(errors) == 4 ]] || fail "$path: not four errors: $(cat "$work/json")"
    continue
  fi
  for name in tree/small tree/large small large; do
    as_user cmp "$work/src/tree/${name#tree/}" "$mnt/$path/$name" || fail "$path: $name differs"
  done
  [[ $(as_user stat -c %u "$mnt/$path/tree" "$mnt/$path/small" | uniq) == "$user" ]] || fail "$path: another owner"
done

step "a named file is imported from a directory that the user cannot list"
mkdir -m 711 "$work/src/search-only"
echo found >"$work/src/search-only/file"
as_user "$siltfs" import "$work/src/search-only/file" "$mnt/write/own" >/dev/null
[[ $(as_user cat "$mnt/write/own/file") == found ]] || fail "another content"
as_user "$siltfs" import "$work/src/search-only" "$mnt/write/own" >/dev/null 2>"$work/err" && fail "was listed"

step "in a sticky directory the user replaces own files only"
mkdir "$work/src/sticky"
echo new | tee "$work/src/sticky/of-root" "$work/src/sticky/of-user" >"$work/src/sticky/made"
code=0
as_user "$siltfs" import --json "$work/src/sticky/of-root" "$work/src/sticky/of-user" "$work/src/sticky/made" \
  "$mnt/sticky" >"$work/json" 2>"$work/err" || code=$?
((code == 3)) || fail "it ends with $code: $(cat "$work/err")"
[[ $(errors) == 1 ]] || fail "not one error: $(cat "$work/json")"
[[ $(as_user cat "$mnt/sticky/of-root" "$mnt/sticky/of-user" "$mnt/sticky/made") == $'of root\nnew\nnew' ]] ||
  fail "the directory has other contents"

step "the user exports the same files as the kernel lets read"
mkdir "$work/by-cp" "$work/by-export"
chown $user "$work/by-cp" "$work/by-export"
as_user cp -r "$mnt/read/." "$work/by-cp" 2>/dev/null && fail "the kernel lets the user read everything"
code=0
as_user "$siltfs" export --json "$mnt/read" "$work/by-export" >"$work/json" 2>"$work/err" || code=$?
((code == 3)) || fail "it ends with $code: $(cat "$work/err")"
denied=0
for path in "${!expected[@]}"; do
  [[ $path == read/* ]] || continue
  kernel=no exported=no
  [[ ! -e $work/by-cp/${path#read/} ]] || kernel=yes
  [[ ! -e $work/by-export/${path#read/} ]] || exported=yes
  same_as_kernel "$path" $kernel $exported
  [[ $kernel == yes ]] || denied=$((denied + 1))
  [[ $kernel == no ]] || cmp "$work/by-cp/${path#read/}" "$work/by-export/${path#read/}"
done
[[ $(errors) == "$denied" ]] || fail "not $denied errors: $(cat "$work/json")"

step "du and find-duplicates leave out what the kernel does not let the user read"
readable=0
for path in "${!expected[@]}"; do
  [[ $path != read/* || ${expected[$path]} == no ]] || readable=$((readable + 1))
done
code=0
as_user "$siltfs" du --json "$mnt/read" >"$work/json" 2>"$work/err" || code=$?
((code == 3)) || fail "it ends with $code: $(cat "$work/err")"
grep -q "you may not read $denied of" "$work/err" || fail "another warning: $(cat "$work/err")"
counted=$(jq -c '[.files, .logical_bytes, .exclusive_bytes, .left_out]' "$work/json")
[[ $counted == "[$readable,$((readable * 1000)),$((readable * 1000)),$denied]" ]] || fail "it counts $counted"
code=0
as_user "$siltfs" find-duplicates --json "$mnt/read" >"$work/json" 2>"$work/err" || code=$?
[[ $code == 3 && $(jq -c '[.files, .left_out]' "$work/json") == "[$readable,$denied]" ]] || fail "$code: $(cat "$work/json")"
for path in "${!expected[@]}"; do
  [[ $path == read/* ]] || continue
  kernel=yes counted=yes # a file in a directory that may only be searched can be named
  as_user cat "$mnt/$path" >"$work/out" 2>&1 || kernel=no
  as_user "$siltfs" du "$mnt/$path" >"$work/out" 2>"$work/err" || counted=no
  [[ $counted == "$kernel" ]] || fail "$path: the kernel says $kernel, and siltfs $counted: $(cat "$work/err")"
  [[ $counted == yes ]] || grep -qi 'permission denied' "$work/err" || fail "$path: another cause: $(cat "$work/err")"
done
as_user "$siltfs" umount "$mnt"
