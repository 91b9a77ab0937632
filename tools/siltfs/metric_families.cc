#include "tools/siltfs/metric_families.h"

#include <array>

namespace siltfs {
namespace {

constexpr MetricType kGauge = MetricType::kGauge;
constexpr MetricType kCounter = MetricType::kCounter;

// clang-format off
constexpr std::array kStoreFamilies = {
    // Space.
    MetricFamily{"logical_bytes", "/logical_bytes", kGauge, "bytes", "Contents of files, holes excluded."},
    MetricFamily{"unique_bytes", "/unique_bytes", kGauge, "bytes", "Uncompressed bytes of the distinct chunks in use."},
    MetricFamily{"stored_bytes", "/stored_bytes", kGauge, "bytes", "Bytes of all segment files."},
    MetricFamily{"dead_bytes", "/dead_bytes", kGauge, "bytes", "The part of the stored bytes that garbage collection can free."},
    MetricFamily{"awaiting_recompression_bytes", "/awaiting_recompression_bytes", kGauge, "bytes", "The part of the stored bytes that is not recompressed yet."},
    MetricFamily{"metadata_bytes", "/metadata_bytes", kGauge, "bytes", "Bytes of the metadata."},
    MetricFamily{"index_bytes", "/index_bytes", kGauge, "bytes", "Bytes of the chunk index, the segment guide and the super-features."},
    MetricFamily{"reserve_bytes", "/reserve_bytes", kGauge, "bytes", "Space that is kept for deleting on a full disk."},
    MetricFamily{"disk_size_bytes", "/disk_bytes", kGauge, "bytes", "Size of the disk below the store."},
    MetricFamily{"disk_available_bytes", "/disk_available_bytes", kGauge, "bytes", "Free space of this disk that new data can use."},
    MetricFamily{"added_bytes", "/added_bytes", kCounter, "bytes", "Uncompressed bytes of new chunks since the mount."},
    MetricFamily{"dedup_ratio", "/dedup_ratio", kGauge, "ratio", "Logical bytes divided by unique bytes."},
    MetricFamily{"compression_ratio", "/compression_ratio", kGauge, "ratio", "Unique bytes divided by the stored bytes that are not dead."},
    MetricFamily{"total_ratio", "/total_ratio", kGauge, "ratio", "Logical bytes divided by all bytes of the store."},
    // Contents.
    MetricFamily{"files", "/files", kGauge, "", "Files, links and other inodes that are not directories."},
    MetricFamily{"directories", "/directories", kGauge, "", "Directories."},
    MetricFamily{"chunk_references", "/chunks_logical", kGauge, "", "References from files to chunks."},
    MetricFamily{"chunks", "/chunks_unique", kGauge, "", "Distinct chunks in use."},
    MetricFamily{"commits", "/last_commit", kCounter, "", "Number of the last commit."},
    MetricFamily{"created_timestamp_seconds", "/created_at", kGauge, "seconds", "When the store was made."},
    // Damage.
    MetricFamily{"damaged_blocks", "/damaged_blocks", kGauge, "", "Blocks that are known to be damaged."},
    MetricFamily{"damaged_chunks", "/damaged_chunks", kGauge, "", "Chunks in these blocks."},
    MetricFamily{"sha1_collisions", "/sha1_collisions", kCounter, "", "Pairs of chunks with the same SHA-1 that were met."},
    MetricFamily{"read_only", "/read_only", kGauge, "", "1 if the store is mounted read-only or has become read-only."},
    MetricFamily{"last_scrub_timestamp_seconds", "/last_scrub/ended_at", kGauge, "seconds", "When all stored data was last verified."},
    MetricFamily{"last_scrub_damaged_chunks", "/last_scrub/damaged_chunks", kGauge, "", "Damaged chunks that the last scrub found."},
    MetricFamily{"last_scrub_damaged_footers", "/last_scrub/damaged_footers", kGauge, "", "Damaged footers of segments that the last scrub found."},
    // The chunk index.
    MetricFamily{"index_entries", "/index/entries", kGauge, "", "Entries of the chunk index."},
    MetricFamily{"index_memory_bytes", "/index/memory_bytes", kGauge, "bytes", "Memory of the chunk index."},
    MetricFamily{"index_flash_bytes", "/index/flash_bytes", kGauge, "bytes", "Files of the chunk index."},
    MetricFamily{"index_lookups", "/index/lookups", kCounter, "", "Names that were looked up since the mount."},
    MetricFamily{"index_flash_reads", "/index/flash_reads", kCounter, "", "Reads of flash for these lookups."},
    MetricFamily{"index_put_flash_reads", "/index/put_flash_reads", kCounter, "", "Reads of flash for new entries."},
    MetricFamily{"index_put_bytes", "/index/entry_bytes_put", kCounter, "bytes", "Bytes of the entries that were put since the mount."},
    MetricFamily{"index_flash_written_bytes", "/index/flash_bytes_written", kCounter, "bytes", "Bytes that the index has written since the mount."},
    MetricFamily{"index_read_amplification_ratio", "/index/read_amplification", kGauge, "ratio", "Reads of flash for each lookup since the mount."},
    MetricFamily{"index_write_amplification_ratio", "/index/write_amplification", kGauge, "ratio", "Bytes written for each byte put since the mount."},
    MetricFamily{"index_conversions", "/index/conversions", kCounter, "", "Component stores that were converted since the mount."},
    MetricFamily{"index_merges", "/index/merges", kCounter, "", "Merges of component stores since the mount."},
    MetricFamily{"index_merge_backlog", "/index/merge_backlog", kGauge, "", "Component stores that wait for a conversion or a merge."},
    MetricFamily{"index_damaged_pages", "/index/damaged_pages", kCounter, "", "Damaged pages of the index that were met since the mount."},
    MetricFamily{"index_replay_running", "/index_replay/running", kGauge, "", "1 while the index is rebuilt; writes wait in this time."},
    MetricFamily{"index_replay_segments_done", "/index_replay/segments_done", kGauge, "", "Segments that are in the rebuilt index."},
    MetricFamily{"index_replay_segments", "/index_replay/segments_total", kGauge, "", "Segments that the rebuilt index must have."},
    // The segment guide.
    MetricFamily{"guide_segments", "/guide/segments", kGauge, "", "Segments that the segment guide covers."},
    MetricFamily{"guide_uncovered_segments", "/guide/uncovered_segments", kGauge, "", "Segments that it does not cover."},
    MetricFamily{"guide_names", "/guide/names", kGauge, "", "Names of chunks in the segment guide."},
    MetricFamily{"guide_memory_bytes", "/guide/memory_bytes", kGauge, "bytes", "Memory of the segment guide."},
    MetricFamily{"guide_flash_bytes", "/guide/flash_bytes", kGauge, "bytes", "Files of the segment guide."},
    MetricFamily{"guide_lookups", "/guide/lookups", kCounter, "", "Names that were looked up in the guide since the mount."},
    MetricFamily{"guide_segments_searched", "/guide/segments_searched", kCounter, "", "Segments that were searched without the index since the mount."},
    MetricFamily{"guide_flash_reads", "/guide/flash_reads", kCounter, "", "Reads of flash by the guide since the mount."},
    MetricFamily{"guide_flash_written_bytes", "/guide/flash_bytes_written", kCounter, "bytes", "Bytes that the guide has written since the mount."},
    MetricFamily{"guide_damaged_pages", "/guide/damaged_pages", kCounter, "", "Damaged pages of the guide that were met since the mount."},
    // Deltas.
    MetricFamily{"delta_segments", "/deltas/segments", kGauge, "", "Segments with deltas."},
    MetricFamily{"delta_memory_bytes", "/deltas/memory_bytes", kGauge, "bytes", "Memory for the names of chunks that stay whole."},
    MetricFamily{"delta_chunks", "/deltas/deltas", kCounter, "", "Chunks that were stored as deltas since the mount."},
    MetricFamily{"delta_saved_bytes", "/deltas/saved_bytes", kCounter, "bytes", "Bytes that these deltas have saved."},
    MetricFamily{"delta_examined_chunks", "/deltas/examined", kCounter, "", "Chunks for which a base was looked for since the mount."},
    MetricFamily{"delta_candidates", "/deltas/candidates", kCounter, "", "Resembling chunks that were found for them."},
    MetricFamily{"delta_offered_bases", "/deltas/offered", kCounter, "", "Bases that were offered after their verification."},
    MetricFamily{"super_feature_entries", "/deltas/lsh/entries", kGauge, "", "Super-features of chunks."},
    MetricFamily{"super_feature_memory_bytes", "/deltas/lsh/memory_bytes", kGauge, "bytes", "Memory of the super-features."},
    MetricFamily{"super_feature_flash_bytes", "/deltas/lsh/flash_bytes", kGauge, "bytes", "Files of the super-features."},
    MetricFamily{"super_feature_lookups", "/deltas/lsh/lookups", kCounter, "", "Lookups of super-features since the mount."},
    MetricFamily{"super_feature_flash_reads", "/deltas/lsh/flash_reads", kCounter, "", "Reads of flash for these lookups."},
    MetricFamily{"super_feature_flash_written_bytes", "/deltas/lsh/flash_bytes_written", kCounter, "bytes", "Bytes of super-features written since the mount."},
    MetricFamily{"super_feature_damaged_pages", "/deltas/lsh/damaged_pages", kCounter, "", "Damaged pages of super-features met since the mount."},
    // The bucket.
    MetricFamily{"bucket_segments", "/bucket/segments", kGauge, "", "Sealed segments, in the bucket or waiting for their upload."},
    MetricFamily{"bucket_stored_bytes", "/bucket/bucket_bytes", kGauge, "bytes", "Bytes of the segments in the bucket."},
    MetricFamily{"bucket_metadata_bytes", "/bucket/metadata_bytes", kGauge, "bytes", "The last checkpoint and the log of commits since then, before their compression."},
    MetricFamily{"bucket_cache_bytes", "/bucket/cache_bytes", kGauge, "bytes", "Local bytes of segments."},
    MetricFamily{"bucket_cache_limit_bytes", "/bucket/cache_limit_bytes", kGauge, "bytes", "The most local bytes of segments."},
    MetricFamily{"bucket_cache_hits", "/bucket/cache_hits", kCounter, "", "Blocks that reads have found in the cache since the mount."},
    MetricFamily{"bucket_cache_misses", "/bucket/cache_misses", kCounter, "", "Blocks that reads have not found in the cache since the mount."},
    MetricFamily{"bucket_waiting_segments", "/bucket/waiting_segments", kGauge, "", "Segments that wait for their upload."},
    MetricFamily{"bucket_waiting_bytes", "/bucket/waiting_bytes", kGauge, "bytes", "Bytes of these segments."},
    MetricFamily{"bucket_cache_full", "/bucket/cache_full", kGauge, "", "1 if writes wait because the cache is full of such segments."},
    MetricFamily{"bucket_behind_seconds", "/bucket/seconds_behind", kGauge, "seconds", "For how long the bucket lacks the oldest data that it does not have; 0 if it has everything."},
    MetricFamily{"bucket_behind_bytes", "/bucket/bytes_behind", kGauge, "bytes", "Bytes of the segments and commits that the bucket does not have."},
    MetricFamily{"bucket_behind_commits", "/bucket/commits_behind", kGauge, "", "Commits that the bucket does not have."},
    MetricFamily{"bucket_fenced", "/bucket/fenced", kGauge, "", "1 if another machine has taken over the bucket."},
    MetricFamily{"bucket_outage_seconds", "/bucket/outage_seconds", kGauge, "seconds", "For how long the bucket has not answered; 0 if it answers."},
    MetricFamily{"bucket_all_outages_seconds", "/bucket/all_outages_seconds", kCounter, "seconds", "The length of all outages of the bucket since the mount."},
    MetricFamily{"bucket_retries", "/bucket/retries", kCounter, "", "Requests that were repeated since the mount."},
    MetricFamily{"bucket_request_failures", "/bucket/request_failures", kCounter, "", "Calls of the bucket that have failed since the mount."},
    MetricFamily{"bucket_sent_bytes", "/bucket/sent_bytes", kCounter, "bytes", "Bytes of bodies that were sent to the bucket since the mount."},
    MetricFamily{"bucket_received_bytes", "/bucket/received_bytes", kCounter, "bytes", "Bytes of bodies that came from the bucket since the mount."},
    MetricFamily{"bucket_storage_cost_per_month", "/bucket/estimated_cost/storage_per_month", kGauge, "", "Estimated price of what is in the bucket, for a month, in the currency of the prices."},
    MetricFamily{"bucket_request_cost", "/bucket/estimated_cost/requests", kCounter, "", "Estimated price of the requests since the mount."},
    MetricFamily{"bucket_egress_cost", "/bucket/estimated_cost/egress", kCounter, "", "Estimated price of the bytes that came from the bucket since the mount."},
};

constexpr std::array kRequestKinds = {
    RequestKind{"put", "/bucket/put_requests"},   RequestKind{"get", "/bucket/get_requests"},
    RequestKind{"head", "/bucket/head_requests"}, RequestKind{"list", "/bucket/list_requests"},
    RequestKind{"delete", "/bucket/delete_requests"},
};

// The counts of lookups are left out: they are sums over the component stores that exist, and fall
// when stores are merged.
constexpr std::array kKindFamilies = {
    MetricFamily{"index_stores", "/count", kGauge, "", "Component stores of the index of this kind."},
    MetricFamily{"index_store_entries", "/entries", kGauge, "", "Entries in the component stores of this kind."},
    MetricFamily{"index_store_memory_bytes", "/memory_bytes", kGauge, "bytes", "Memory of the component stores of this kind."},
    MetricFamily{"index_store_flash_bytes", "/flash_bytes", kGauge, "bytes", "Files of the component stores of this kind."},
};
// clang-format on

}  // namespace

std::span<const MetricFamily> StoreMetricFamilies() { return kStoreFamilies; }

const MetricFamily kBucketRequestsFamily = {
    "bucket_requests", "", kCounter, "",
    "Requests of this kind to the bucket since the mount, repeated ones included."};

std::span<const RequestKind> BucketRequestKinds() { return kRequestKinds; }

std::span<const MetricFamily> IndexKindMetricFamilies() { return kKindFamilies; }

}  // namespace siltfs
