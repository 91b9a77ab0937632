# Sourced by with_service.sh. SeaweedFS: a master, a filer, the gateway, and one volume server or
# four, each with its own disk.
#
# shellcheck shell=bash

start_service() {
  need weed
  local ports count=1 replication=000 node
  if [[ $service == seaweed4 ]]; then
    count=4
    replication=001 # two servers of the rack
  fi
  read -r -a ports <<<"$(free_ports $((6 + 2 * count)))"
  cat >"$data/s3.json" <<END
{"identities": [{"name": "test", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
  "credentials": [{"accessKey": "$AWS_ACCESS_KEY_ID", "secretKey": "$AWS_SECRET_ACCESS_KEY"}]}]}
END
  mkdir "$data/master" "$data/filer"
  local master=127.0.0.1:${ports[0]}.${ports[1]}
  local common=(-ip=127.0.0.1 -ip.bind=127.0.0.1)
  cd "$data" # without a file of its own, the filer keeps its data in the working directory
  launch master weed -logtostderr master "${common[@]}" -port="${ports[0]}" -port.grpc="${ports[1]}" \
    -mdir="$data/master" -defaultReplication="$replication" -volumeSizeLimitMB=1024
  for ((node = 0; node < count; node++)); do
    mkdir "$data/volume$node"
    launch "volume$node" weed -logtostderr volume "${common[@]}" -port="${ports[6 + 2 * node]}" \
      -port.grpc="${ports[7 + 2 * node]}" -dir="$data/volume$node" -max=200 -mserver="$master"
    nodes+=("${pids[-1]}")
  done
  launch filer weed -logtostderr filer "${common[@]}" -port="${ports[2]}" -port.grpc="${ports[3]}" \
    -defaultStoreDir="$data/filer" -master="$master"
  launch gateway weed -logtostderr s3 -ip.bind=127.0.0.1 -port="${ports[4]}" -port.grpc="${ports[5]}" \
    -filer="127.0.0.1:${ports[2]}.${ports[3]}" -config="$data/s3.json"
  cd - >/dev/null
  address=http://127.0.0.1:${ports[4]}
}
