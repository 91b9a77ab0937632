#include "tools/siltfs/store_bucket_report.h"

#include <algorithm>
#include <utility>

namespace siltfs {
namespace {

using Json = nlohmann::json;

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

Json RequestsToJson(const ObjectStoreCounters& requests) {
  return {{"put_requests", requests.puts},
          {"get_requests", requests.gets},
          {"head_requests", requests.stats},
          {"list_requests", requests.lists},
          {"delete_requests", requests.removes},
          {"retries", requests.retries},
          {"request_failures", requests.failures},
          {"sent_bytes", requests.sent_bytes},
          {"received_bytes", requests.received_bytes}};
}

Json PricesToJson(const BucketPrices& prices, bool are_defaults) {
  return {{"put", prices.put},       {"get", prices.get},           {"storage", prices.storage},
          {"egress", prices.egress}, {"currency", prices.currency}, {"are_defaults", are_defaults}};
}

// `bytes`: those in the bucket.
Json CostToJson(const StoreBucketStats& bucket, uint64_t bytes, const BucketPrices& prices) {
  const BucketCost now = EstimateCost(prices, bucket.requests, bytes);
  const BucketCost total = EstimateCost(prices, bucket.total.requests, bytes);
  return {{"currency", prices.currency},      {"storage_per_month", now.storage_per_month},
          {"requests", now.requests},         {"egress", now.egress},
          {"total_requests", total.requests}, {"total_egress", total.egress}};
}

Json LagToJson(const BucketLag& lag) {
  return {{"commits_behind", lag.commits},
          {"commit_bytes_behind", lag.bytes},
          {"commit_seconds_behind", lag.seconds},
          {"newest_commit", lag.newest},
          {"shipped_commit", lag.shipped},
          {"shipped_at", Seconds(lag.shipped_time_ns)},
          {"epoch", lag.epoch},
          {"fenced", lag.fenced},
          {"checkpoint_waits", lag.checkpoint_waits},
          {"log_objects", lag.log_objects},
          {"checkpoints", lag.checkpoints},
          {"metadata_bytes", lag.metadata_bytes},
          {"writer", lag.host},
          {"lease_end", Seconds(lag.lease_end_ns)},
          {"readers", lag.readers},
          {"slowest_reader", lag.slowest_reader},
          {"last_commit_error", lag.last_error}};
}

}  // namespace

Json ToJson(const StoreBucketStats& bucket) {
  const UploadStatus& uploads = bucket.segments.uploads;
  const LocalCacheCounters& cache = bucket.segments.cache;
  const uint64_t segment_bytes = bucket.segments.segment_bytes -
                                 std::min(bucket.segments.segment_bytes, uploads.waiting_bytes);
  const BucketLag lag = bucket.lag.value_or(BucketLag());
  const BucketPrices prices = bucket.prices.value_or(BucketPrices());
  Json total = RequestsToJson(bucket.total.requests);
  total["since"] = Seconds(bucket.total.since_ns);
  Json json = {
      {"address", bucket.address},
      {"segments", bucket.segments.segments},
      {"bucket_bytes", segment_bytes},
      {"waiting_segments", uploads.waiting},
      {"waiting_bytes", uploads.waiting_bytes},
      {"behind_seconds", uploads.behind_seconds},
      {"seconds_behind", std::max(lag.seconds, static_cast<double>(uploads.behind_seconds))},
      {"bytes_behind", uploads.waiting_bytes + lag.bytes},
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
      {"outage_seconds", Seconds(bucket.health.present_outage.count())},
      {"all_outages_seconds", Seconds(bucket.health.outage.count())},
      {"last_request_error", bucket.health.last_error},
      {"last_request_error_at", Seconds(bucket.health.last_error_ns)},
      {"total", std::move(total)},
      {"prices", PricesToJson(prices, !bucket.prices)},
      {"estimated_cost", CostToJson(bucket, segment_bytes + lag.metadata_bytes, prices)}};
  json.update(RequestsToJson(bucket.requests));
  if (bucket.lag) json.update(LagToJson(lag));
  return json;
}

}  // namespace siltfs
