// What the parts of a verification of a bucket share (verify_bucket.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "fs/bucket/bucket_findings.h"
#include "fs/bucket/known_segments.h"
#include "fs/bucket/verify_bucket.h"
#include "store/base/status.h"
#include "store/object/object_store.h"

namespace siltfs {

struct Verification {
  ObjectStore& objects;
  const BucketVerifyOptions& options;
  const LocalStore* local;  // null: the bucket is compared with its own commits
  BucketFindings findings = {};
  BucketVerifyReport report = {};  // without the findings

  Status GoOn() const {
    if (!options.interrupted || !options.interrupted()) return Status::Ok();
    return Status(StatusCode::kInterrupted, "was interrupted");
  }
  void Progress(std::string_view step, uint64_t done, uint64_t total) const {
    if (options.on_progress) options.on_progress(step, done, total);
  }
};

}  // namespace siltfs
