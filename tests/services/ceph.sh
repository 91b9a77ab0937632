# Sourced by with_service.sh. Ceph with its gateway: a monitor and three storage daemons, whose disks
# are sparse files. No manager is needed, and authentication between the daemons is switched off
# (the gateway's default for its connection to the monitor, secure, would need it).
#
# shellcheck shell=bash

start_service() {
  need ceph-mon ceph-osd radosgw radosgw-admin ceph monmaptool
  local monitor_v2 monitor_v1 gateway fsid id uuid
  read -r monitor_v2 monitor_v1 gateway <<<"$(free_ports 3)"
  fsid=$(cat /proc/sys/kernel/random/uuid)
  export CEPH_CONF=$data/ceph.conf
  cat >"$CEPH_CONF" <<END
[global]
fsid = $fsid
mon_host = [v2:127.0.0.1:$monitor_v2/0,v1:127.0.0.1:$monitor_v1/0]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_client_mode = crc
mon_data_avail_warn = 2
mon_data_avail_crit = 1
run_dir = $data
admin_socket = $data/\$name.sock
log_file = $data/\$name.daemon
pid_file =
crash_dir = $data
mon_data = $data/mon
osd_data = $data/osd\$id
rgw_data = $data/rgw
keyring = $data/keyring
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 2
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
osd_pool_default_pg_autoscale_mode = off
mon_max_pg_per_osd = 1000
mon_allow_pool_delete = true
mon_osd_down_out_interval = 3600
mon_warn_on_insecure_global_id_reclaim_allowed = false
osd_memory_target = 939524096
bluestore_block_size = ${SILTFS_TEST_CEPH_DISK_BYTES:-42949672960}
osd_objectstore = bluestore
rgw_enable_usage_log = false
rgw_enable_ops_log = false
END
  mkdir "$data/mon" "$data/rgw"
  monmaptool --create --fsid "$fsid" --addv a "[v2:127.0.0.1:$monitor_v2,v1:127.0.0.1:$monitor_v1]" \
    "$data/monmap" >"$data/setup.log" 2>&1
  ceph-mon --mkfs -i a --monmap "$data/monmap" >>"$data/setup.log" 2>&1
  launch monitor ceph-mon -f -i a
  await "the monitor" ceph --connect-timeout 60 status
  for id in 0 1 2; do
    uuid=$(cat /proc/sys/kernel/random/uuid)
    mkdir "$data/osd$id"
    [[ $(ceph osd new "$uuid") == "$id" ]] || fail "the storage daemons have other numbers"
    ceph-osd --mkfs -i "$id" --osd-uuid "$uuid" >>"$data/setup.log" 2>&1
    launch "osd$id" ceph-osd -f -i "$id"
    nodes+=("${pids[-1]}")
  done
  await "the storage daemons" eval 'ceph osd stat | grep -q "3 up"'
  launch gateway radosgw -f -n client.rgw --rgw-frontends "beast endpoint=127.0.0.1:$gateway"
  radosgw-admin user create --uid test --display-name test --access-key "$AWS_ACCESS_KEY_ID" \
    --secret-key "$AWS_SECRET_ACCESS_KEY" >>"$data/setup.log" 2>&1
  address=http://127.0.0.1:$gateway
}
