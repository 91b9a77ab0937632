#include "tools/siltfs/store_bucket_report.h"

namespace siltfs {

nlohmann::json ToJson(const StoreBucketStats& bucket) {
  const UploadStatus& uploads = bucket.segments.uploads;
  const LocalCacheCounters& cache = bucket.segments.cache;
  const ObjectStoreCounters& requests = bucket.requests;
  nlohmann::json json = {{"address", bucket.address},
                         {"segments", bucket.segments.segments},
                         {"waiting_segments", uploads.waiting},
                         {"waiting_bytes", uploads.waiting_bytes},
                         {"behind_seconds", uploads.behind_seconds},
                         {"uploaded_segments", uploads.uploaded},
                         {"uploaded_bytes", uploads.uploaded_bytes},
                         {"upload_failures", uploads.failures},
                         {"last_error", uploads.last_error},
                         {"cache_bytes", cache.used_bytes},
                         {"cache_limit_bytes", cache.limit_bytes},
                         {"cache_hits", cache.hits},
                         {"cache_misses", cache.misses},
                         {"cache_evictions", cache.evictions},
                         {"cache_waits", cache.waits},
                         {"cache_full", cache.full},
                         {"deletions_waiting", bucket.segments.deletions_waiting},
                         {"put_requests", requests.puts},
                         {"get_requests", requests.gets},
                         {"head_requests", requests.stats},
                         {"list_requests", requests.lists},
                         {"delete_requests", requests.removes},
                         {"retries", requests.retries},
                         {"request_failures", requests.failures},
                         {"sent_bytes", requests.sent_bytes},
                         {"received_bytes", requests.received_bytes}};
  if (!bucket.lag) return json;
  const BucketLag& lag = *bucket.lag;
  json["commits_behind"] = lag.commits;
  json["commit_bytes_behind"] = lag.bytes;
  json["commit_seconds_behind"] = lag.seconds;
  json["newest_commit"] = lag.newest;
  json["shipped_commit"] = lag.shipped;
  json["shipped_at"] = static_cast<double>(lag.shipped_time_ns) / 1e9;
  json["epoch"] = lag.epoch;
  json["fenced"] = lag.fenced;
  json["checkpoint_waits"] = lag.checkpoint_waits;
  json["log_objects"] = lag.log_objects;
  json["checkpoints"] = lag.checkpoints;
  json["readers"] = lag.readers;
  json["slowest_reader"] = lag.slowest_reader;
  json["last_commit_error"] = lag.last_error;
  return json;
}

}  // namespace siltfs
