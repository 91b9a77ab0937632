// Compares the objects of segments with what metadata says that they are (verify_bucket.h).
#pragma once

#include "fs/bucket/bucket_listing.h"
#include "fs/bucket/verification.h"
#include "fs/shipping/restore_kv_store.h"
#include "store/base/status.h"

namespace siltfs {

// `restored`: the records as of the last commit in the bucket; may be null.
Status VerifySegments(Verification& verification, const BucketListing& listing,
                      const RestoredKvStore* restored);

}  // namespace siltfs
