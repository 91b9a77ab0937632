// Collects what a verification of a bucket finds (verify_bucket.h).
//
// Thread-safety: any thread, but for TakeInto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fs/bucket/verify_bucket.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class BucketFindings {
 public:
  // `code` is a literal.
  void Add(std::string_view code, std::string key, std::string message) SILTFS_EXCLUDES(mutex_);
  void Leftover(std::string key, std::string message) {
    Add(kLeftoverObject, std::move(key), std::move(message));
  }
  // Adds a failed read of the object if it is damage; returns other failures.
  Status Note(const Status& status, const std::string& key);

  // Moves everything into the report, in the order of the keys.
  void TakeInto(BucketVerifyReport& report) SILTFS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::vector<BucketFinding> findings_ SILTFS_GUARDED_BY(mutex_);
  std::vector<BucketFinding> leftovers_ SILTFS_GUARDED_BY(mutex_);
  uint64_t errors_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t leftover_objects_ SILTFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace siltfs
