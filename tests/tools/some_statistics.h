// Statistics in which everything occurs that `siltfs stat --json` can show.
#pragma once

#include <nlohmann/json.hpp>

#include "fs/control/stats_json.h"
#include "tools/siltfs/store_bucket_report.h"

namespace siltfs::testing {

// The time for which these statistics are made, in seconds since 1970.
inline constexpr double kSomeTime = 1'700'000'000;

inline FileSystemStats SomeStatistics() {
  FileSystemStats stats;
  stats.logical_bytes = uint64_t{40} << 30;
  stats.unique_bytes = uint64_t{10} << 30;
  stats.stored_bytes = uint64_t{5} << 30;
  stats.awaiting_recompression_bytes = uint64_t{1} << 30;
  stats.dead_bytes = 1 << 20;
  stats.metadata_bytes = 2 << 20;
  stats.index_bytes = 1 << 20;
  stats.files = 3;
  stats.directories = 2;
  stats.chunks_logical = 40;
  stats.chunks_unique = 10;
  stats.added_bytes = 900;
  stats.last_commit = 77;
  stats.created_ns = static_cast<int64_t>((kSomeTime - 100 * 86'400) * 1e9);
  stats.last_scrub = LastScrub{.ended_ns = static_cast<int64_t>((kSomeTime - 3 * 86'400) * 1e9)};
  stats.disk_bytes = uint64_t{100} << 30;
  stats.disk_available_bytes = uint64_t{60} << 30;
  stats.chunker_kernel = "portable";
  stats.sha1_kernel = "evp";
  stats.index.engine = "silt";
  stats.index.entries = 10;
  stats.index.memory_bytes = 25;
  stats.index.lookups = 8;
  stats.index.flash_reads = 4;
  stats.index.entry_bytes_put = 320;
  stats.index.flash_bytes_written = 960;
  stats.index.stores.push_back({.kind = "log_store", .entries = 4});
  stats.index.stores.push_back({.kind = "sorted_store", .entries = 6});
  stats.guide.emplace();
  stats.deltas.emplace();
  stats.deltas->lsh.emplace();
  return stats;
}

inline nlohmann::json ToMountedJson(const FileSystemStats& stats) {
  return ToJson(stats, "/srv/store",
                DaemonInfo{.pid = 17, .mountpoint = "/mnt", .transport = "dev_fuse"});
}

inline StoreBucketStats SomeBucket() {
  StoreBucketStats bucket;
  bucket.address = "s3://backups/laptop";
  bucket.requests = {.puts = 3000, .gets = 20'000, .stats = 5, .lists = 1000, .removes = 7};
  bucket.requests.retries = 8;
  bucket.requests.failures = 2;
  bucket.requests.sent_bytes = uint64_t{3} << 30;
  bucket.requests.received_bytes = 2'000'000'000;
  bucket.total.requests = bucket.requests;
  bucket.total.requests.puts = 103'000;
  bucket.total.since_ns = static_cast<int64_t>((kSomeTime - 86'400) * 1e9);
  bucket.segments.segments = 100;
  bucket.segments.segment_bytes = uint64_t{5} << 30;
  bucket.segments.cache.used_bytes = uint64_t{1} << 30;
  bucket.segments.cache.limit_bytes = uint64_t{2} << 30;
  bucket.lag.emplace();
  bucket.lag->epoch = 4;
  bucket.lag->host = "laptop";
  bucket.lag->lease_end_ns = static_cast<int64_t>((kSomeTime + 30) * 1e9);
  bucket.lag->newest = bucket.lag->shipped = 50;
  bucket.lag->metadata_bytes = uint64_t{1} << 20;
  return bucket;
}

// The statistics of a mounted store in a bucket.
inline nlohmann::json WithBucket(nlohmann::json statistics,
                                 const StoreBucketStats& bucket = SomeBucket()) {
  statistics["bucket"] = ToJson(bucket);
  return statistics;
}

}  // namespace siltfs::testing
