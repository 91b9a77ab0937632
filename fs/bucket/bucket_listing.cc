#include "fs/bucket/bucket_listing.h"

#include "fs/bucket/bucket_owner.h"
#include "fs/shipping/bucket_log.h"
#include "fs/shipping/checkpoint.h"
#include "fs/shipping/object_keys.h"
#include "fs/shipping/segment_tails.h"
#include "store/bucket/bucket_names.h"

namespace siltfs {
namespace {

void Classify(const ObjectInfo& object, BucketListing& listing, BucketFindings& findings) {
  const std::string& key = object.key;
  if (const auto content = ParseSegmentObjectKey(key)) {
    listing.segments[content->segment].push_back({content->generation, object.size});
  } else if (const uint64_t number = ParseLogKey(key); number > 0) {
    listing.log.insert(number);
  } else if (const uint64_t manifest = ParseManifestKey(key); manifest > 0) {
    listing.manifests.insert(manifest);
  } else if (key.starts_with(kPartPrefix)) {
    listing.parts.insert(key);
  } else if (const auto tail = ParseTailKey(key)) {
    listing.tails[{tail->epoch, tail->segment}].push_back(tail->offset);
  } else if (key.starts_with(kBucketProbePrefix)) {
    findings.Leftover(key, "a claim of the prefix was interrupted");
  } else if (key != kBucketOwnerKey) {
    findings.Add("foreign-object", key, "siltfs makes no such object");
  }
}

}  // namespace

Result<BucketListing> ListBucket(ObjectStore& objects, BucketFindings& findings,
                                 const std::function<Status(const ObjectInfo&)>& visit) {
  BucketListing listing;
  SILTFS_RETURN_IF_ERROR(ForEachObject(objects, "", [&](const ObjectInfo& object) {
    Classify(object, listing, findings);
    return visit(object);
  }));
  return listing;
}

}  // namespace siltfs
