#include "fs/segments/fenced_writer.h"

#include "fs/records/position_record.h"

namespace siltfs {

uint32_t LastBucketEpoch(const KvSnapshot& metadata) {
  const auto position = ReadPosition(metadata);
  if (position.ok()) return position->epoch;
  position.status().IgnoreError("the writer to the bucket reports it");
  return 0;
}

bool IsOfFencedWriter(SegmentStore& segments, SegmentId id, uint32_t own_epoch) {
  const auto epoch = segments.EpochOf(id);
  return epoch && *epoch < own_epoch;
}

}  // namespace siltfs
