#include "fs/shipping/shipped_segment_store.h"

namespace siltfs {

Status ShippedSegmentStore::AwaitBucket(SegmentId id) {
  const Status shipped = shipper_.WaitBeforeChange(shipper_.Position(), timeout_);
  if (shipped.ok() || shipped.Is(StatusCode::kReadOnly)) return shipped;
  return Status(StatusCode::kNoSpace, std::string(shipped.cause())).At(NameOf(id));
}

Status ShippedSegmentStore::Replace(SegmentId id, const SegmentSource& source) {
  SILTFS_RETURN_IF_ERROR(AwaitBucket(id));
  return base_.Replace(id, source);
}

Status ShippedSegmentStore::Remove(SegmentId id) {
  SILTFS_RETURN_IF_ERROR(AwaitBucket(id));
  return base_.Remove(id);
}

}  // namespace siltfs
