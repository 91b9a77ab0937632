// Verifies the log, the checkpoints and the owner of a bucket (verify_bucket.h). An inner part of
// it.
#pragma once

#include <optional>

#include "fs/bucket/bucket_listing.h"
#include "fs/bucket/verification.h"
#include "fs/shipping/restore_kv_store.h"
#include "store/base/result.h"

namespace siltfs {

// Returns the records of segments as of the last commit in the bucket; nothing if the bucket has no
// commits, or damaged ones.
Result<std::optional<RestoredKvStore>> VerifyCommits(Verification& verification,
                                                     const BucketListing& listing);

}  // namespace siltfs
