// All objects of a store in a bucket, by their kinds.
//
// Thread-safety: as a value. Memory: about 150 bytes for each object. Errors: those of the
// ObjectStore and of `visit`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/bucket/bucket_findings.h"
#include "store/base/location.h"
#include "store/object/object_store.h"

namespace siltfs {

struct BucketListing {
  struct SegmentObject {
    uint64_t generation = 0;
    uint64_t bytes = 0;
  };
  std::map<SegmentId, std::vector<SegmentObject>> segments;
  std::map<std::pair<uint32_t, SegmentId>, std::vector<uint64_t>> tails;  // offsets, by the epoch
  std::set<uint64_t> log;                                                 // numbers
  std::set<uint64_t> manifests;                                           // numbers
  std::set<std::string> parts;                                            // keys
};

// Adds findings for objects of no kind. `visit` is called after each object.
Result<BucketListing> ListBucket(ObjectStore& objects, BucketFindings& findings,
                                 const std::function<Status(const ObjectInfo&)>& visit);

}  // namespace siltfs
