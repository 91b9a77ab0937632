// The state and the counters of a BucketSegmentStore, for `stat`. A plain value.
#pragma once

#include <cstdint>
#include <string>

#include "store/bucket/local_cache.h"
#include "store/bucket/uploader.h"

namespace siltfs {

struct BucketStatus {
  uint64_t segments = 0;
  uint64_t segment_bytes = 0;  // of these segments, in the bucket or waiting
  UploadStatus uploads;
  LocalCacheCounters cache;
  uint64_t deletions_waiting = 0;  // objects that are to be deleted
  uint64_t deleted = 0;            // objects since the start
};

// How far the bucket is behind, in one sentence: "12 segments (384 MiB) wait for upload, the oldest
// for 40 s; last error: ...". Empty if no segment waits.
std::string DescribeUploads(const UploadStatus& uploads);

}  // namespace siltfs
