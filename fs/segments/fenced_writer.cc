#include "fs/segments/fenced_writer.h"

namespace siltfs {

bool IsOfFencedWriter(SegmentStore& segments, SegmentId id, const EpochFloors& floors) {
  if (floors.empty()) return false;
  const auto epoch = segments.EpochOf(id);
  return epoch && floors.IsForeign(id, *epoch);
}

bool IsLeftOver(SegmentStore& segments, SegmentId id, const EpochFloors& floors) {
  const auto epoch = segments.EpochOf(id);
  return epoch && floors.HasEnded(*epoch);
}

bool IsNotLost(SegmentStore& segments, SegmentId id, const EpochFloors& floors,
               const FormerSegments& former) {
  return IsOfFencedWriter(segments, id, floors) ||
         (former.Contains(id) && segments.EpochOf(id).has_value());
}

}  // namespace siltfs
