#!/usr/bin/env bash
# install_services.sh DIRECTORY
#
# Installs the services for tests of stores in a bucket (with_service.sh): Ceph with its gateway from
# Debian's packages, which needs root, SeaweedFS built with `go` from its module, and moto from PyPI.
# SeaweedFS and moto go into DIRECTORY. What is already there is not installed again. A service that
# cannot be had is reported, and its tests are skipped. Exits with 1 if there is none.
#
# The build of SeaweedFS takes some minutes and 5 GB, which are freed at the end. It needs Go 1.25; a
# go command from 1.21 on fetches a newer one itself. Debian 12 has an older one.
set -euo pipefail

seaweedfs=v0.0.0-20261109003541-7506e5f91cd6
moto=5.2.1

(($# == 1)) || { sed -n 's/^# \(install_services.sh.*\)/usage: \1/p' "$0" >&2; exit 2; }
mkdir -p "$1/bin"
directory=$(realpath "$1")
installed=0

report() { # NAME REASON
  if [[ -z $2 ]]; then
    installed=$((installed + 1))
    printf '%s: installed\n' "$1"
  else
    printf '%s: not installed: %s\n' "$1" "$2"
  fi
}

ceph() {
  # `command -v` with several names succeeds if it finds one of them, and it finds this function.
  local program missing=false
  for program in ceph-mon ceph-osd radosgw radosgw-admin ceph monmaptool; do
    type -P "$program" >/dev/null || missing=true
  done
  if ! $missing; then return; fi
  if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
    echo "it needs root and apt-get"
    return
  fi
  # The services of the packages are not configured, so none of them starts.
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    ceph-mon ceph-osd radosgw ceph-common >"$directory/ceph.log" 2>&1 ||
    echo "apt-get has failed, see $directory/ceph.log"
}

seaweedfs() {
  if [[ -x $directory/bin/weed && $(cat "$directory/bin/weed.version" 2>/dev/null) == "$seaweedfs" ]]; then return; fi
  local go version build=$directory/build
  go=$(command -v go || echo /usr/local/go/bin/go)
  version=$("$go" env GOVERSION 2>/dev/null) || { echo "there is no go command"; return; }
  if [[ ! $version =~ ^go1\.([0-9]+) ]] || ((BASH_REMATCH[1] < 21)); then
    echo "$go is $version, and Go 1.21 or newer is needed"
    return
  fi
  mkdir -p "$build/module"
  # A module of its own, because the module of SeaweedFS replaces another one, and `go install` of a
  # version does not follow that.
  printf 'module services\n\ngo 1.25\n\ntool github.com/seaweedfs/seaweedfs/weed\n' >"$build/module/go.mod"
  (
    cd "$build/module"
    export GOPATH=$build/path GOCACHE=$build/cache GOFLAGS="-modcacherw -buildvcs=false"
    "$go" get "github.com/seaweedfs/seaweedfs/weed@$seaweedfs"
    "$go" build -ldflags "-s -w" -o "$directory/bin/weed" github.com/seaweedfs/seaweedfs/weed
  ) >"$directory/seaweedfs.log" 2>&1 || { echo "the build has failed, see $directory/seaweedfs.log"; return; }
  echo "$seaweedfs" >"$directory/bin/weed.version"
  rm -rf "$build"
}

moto() {
  if command -v moto_server >/dev/null || [[ -x $directory/bin/moto_server ]]; then return; fi
  {
    python3 -m venv "$directory/moto" &&
      "$directory/moto/bin/pip" install --quiet "moto[s3,server]==$moto" &&
      ln -sf ../moto/bin/moto_server "$directory/bin/moto_server"
  } >"$directory/moto.log" 2>&1 || echo "pip has failed, see $directory/moto.log"
}

report "Ceph" "$(ceph)"
report "SeaweedFS" "$(seaweedfs)"
report "moto" "$(moto)"
((installed > 0))
