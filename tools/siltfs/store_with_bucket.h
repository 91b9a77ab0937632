// Opens the bucket of a store before a command opens the store.
//
// Thread-safety: from any thread. Errors: those of StoreBucket::Open.
#pragma once

#include <memory>
#include <string>

#include "fs/bucket/store_bucket.h"
#include "fs/interface/file_system.h"

namespace siltfs {

// What programs see as the size of a file system whose segments are in a bucket: 1 PiB.
inline constexpr uint64_t kBucketCapacityBytes = uint64_t{1} << 50;

// Opens the bucket of options.store, and sets the options with which the store finds it. The result
// must outlive the file system. Null, without a change of the options, if the store has no bucket.
inline Result<std::unique_ptr<StoreBucket>> OpenBucketOf(Env& env, FileSystemOptions& options,
                                                         StoreBucketOptions how = {}) {
  how.ships = !options.read_only;
  SILTFS_ASSIGN_OR_RETURN(auto bucket, StoreBucket::Open(env, options.store, how));
  if (bucket != nullptr) {
    options.segments = &bucket->segments();
    options.metadata_layer = bucket->Layer();
    options.capacity_bytes = kBucketCapacityBytes;
  }
  return bucket;
}

}  // namespace siltfs
