#include "fs/segments/fenced_writer.h"

#include <utility>

namespace siltfs {

EpochFloors EpochFloorsOf(const KvSnapshot& metadata) {
  auto floors = ReadEpochFloors(metadata);
  if (floors.ok()) return std::move(floors).value();
  floors.status().IgnoreError("fsck reports it");
  return {};
}

bool IsOfFencedWriter(SegmentStore& segments, SegmentId id, const EpochFloors& floors) {
  if (floors.empty()) return false;
  const auto epoch = segments.EpochOf(id);
  return epoch && floors.IsForeign(id, *epoch);
}

}  // namespace siltfs
