#!/bin/bash
# Stores that are mounted by their label or UUID: by siltfs mount, by mount(8), and by lines of
# fstab(5).
#
#   store_names_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"
# shellcheck source=tests/posix/system_helpers.sh
source "$(dirname "$0")/system_helpers.sh"

stores=$disk/stores
uuid_of() { "$siltfs" tune --json "$1" | jq -r .uuid; }
shown() { # STORE: it is mounted
  [[ $("$siltfs" stat --json "$mnt" | jq -r .store) == "$1" ]] || fail "$mnt does not show $1"
}

mkdir "$stores"
"$siltfs" mkfs "$stores/one" --label "my files"
"$siltfs" mkfs "$stores/two" --label weekly
"$siltfs" mkfs "$disk/elsewhere" --label archive
one=$(uuid_of "$stores/one")

# A copy of /etc takes its place, in which the test can write.
cp -a /etc "$work/etc"
mkdir -p "$work/etc/siltfs"
mount --bind "$work/etc" /etc
printf '# where stores are\n%s\n' "$stores" >/etc/siltfs/stores

step "siltfs mount finds a store by its label and its UUID"
"$siltfs" mount "LABEL=my files" "$mnt" -o "log=$work/log"
shown "$stores/one"
[[ $("$siltfs" list --json | jq -r ".mounts[] | select(.mountpoint == \"$mnt\") | .label + \" \" + .uuid") == "my files $one" ]] ||
  fail "siltfs list: $("$siltfs" list --json)"
"$siltfs" list | grep -q "^STORE  *LABEL  *MOUNTPOINT" || fail "no labels in the list"
"$siltfs" umount "$mnt"
"$siltfs" mount "UUID=$one" "$mnt" -o "log=$work/log"
shown "$stores/one"

step "a mounted store cannot be tuned, and its parameters can be shown"
expect 11 "$siltfs" tune "$stores/one" --label other
said "is mounted on $mnt by process"
expect 11 "$siltfs" tune "$mnt" --label other
[[ $(uuid_of "$mnt") == "$one" ]] || fail "tune does not show a mounted store"
"$siltfs" umount "$mnt"

step "mount(8) passes the sources siltfs-label: and siltfs-uuid: on"
expect 0 mount -t siltfs "siltfs-label:my files" "$mnt"
shown "$stores/one"
expect 0 umount -c "$mnt"
expect 0 mount -t siltfs "siltfs-uuid:$one" "$mnt"
shown "$stores/one"
expect 0 umount -c "$mnt"

step "mount(8) itself resolves LABEL= and UUID=, and finds only disks"
expect 1 mount -t siltfs "UUID=$one" "$mnt"
said "can't find UUID=$one"

step "a line of fstab with a label, twice"
fstab=$work/fstab
printf 'siltfs-label:my\\040files %s siltfs defaults,nofail,log=%s 0 0\n' "$mnt" "$work/log" >"$fstab"
expect 0 mount --fstab "$fstab" -a
shown "$stores/one"
pid=$("$siltfs" stat --json "$mnt" | jq .pid)
expect 0 mount --fstab "$fstab" -a
[[ $("$siltfs" stat --json "$mnt" | jq .pid) == "$pid" ]] || fail "there is another daemon"
(($(grep -c " $mnt " /proc/self/mounts) == 1)) || fail "it is mounted twice"
expect 0 umount -c "$mnt"
expect 0 mount --fstab "$fstab" "$mnt"
shown "$stores/one"
expect 0 umount -c "$mnt"

step "another store on the same mountpoint is not taken for it"
"$siltfs" mount LABEL=weekly "$mnt"
expect 0 mount --fstab "$fstab" -a
shown "$stores/one"
umount -c "$mnt"
shown "$stores/two"
"$siltfs" umount "$mnt"

step "a store outside of the places is found with the option search"
expect 10 "$siltfs" mount LABEL=archive "$mnt"
said "there is no store with LABEL=archive in $stores; list the store's directory in /etc/siltfs/stores"
"$siltfs" mount LABEL=archive "$mnt" -o "search=$stores:$disk"
shown "$disk/elsewhere"
"$siltfs" umount "$mnt"
echo "$disk/elsewhere" >>/etc/siltfs/stores
"$siltfs" mount LABEL=archive "$mnt"
"$siltfs" umount "$mnt"

step "a label of two stores is refused with their names"
"$siltfs" tune "$stores/two" --label "my files"
expect 1 "$siltfs" mount "LABEL=my files" "$mnt"
said "LABEL=my files names several stores: $stores/"
said "$stores/one (UUID $one)"
said "use the UUID, or name the directory"
expect 32 mount --fstab "$fstab" "$mnt"
said "names several stores"
"$siltfs" mount "UUID=$one" "$mnt"
shown "$stores/one"
"$siltfs" umount "$mnt"

step "a changed label and UUID are found after the change"
"$siltfs" tune "$stores/two" --label "" --uuid random >/dev/null
"$siltfs" mount "LABEL=my files" "$mnt"
noise 3M one >"$mnt/file"
"$siltfs" umount "$mnt"
"$siltfs" tune "$stores/one" --uuid random --compression zstd:9 >/dev/null
expect 10 "$siltfs" mount "UUID=$one" "$mnt"
"$siltfs" mount "UUID=$(uuid_of "$stores/one")" "$mnt"
noise 3M one | cmp - "$mnt/file" || fail "the file differs"
"$siltfs" umount "$mnt"
"$siltfs" fsck -n --data "$stores/one"

step "a wrong line in the file is named"
echo "stores" >>/etc/siltfs/stores
expect 2 "$siltfs" mount LABEL=archive "$mnt"
said "/etc/siltfs/stores: line 4: \"stores\" is no absolute path"
