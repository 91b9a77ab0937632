#include "fs/records/epoch_floors.h"

#include <algorithm>
#include <optional>

#include "fs/records/schema.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

// The lowest id above all ids in a table whose keys end with the id of a segment.
Result<SegmentId> EndOf(const KvSnapshot& metadata, Table table, std::string (*key)(SegmentId)) {
  const std::string end = RangeOf(table).end;
  const auto iterator = metadata.NewIteratorBelow(end);
  uint64_t low = 0;
  uint64_t high = uint64_t{UINT32_MAX} + 1;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    iterator->Seek(key(static_cast<SegmentId>(middle)));
    const bool more = iterator->Valid();
    SILTFS_RETURN_IF_ERROR(iterator->status());
    if (more) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return static_cast<SegmentId>(std::min<uint64_t>(low, UINT32_MAX));
}

Status Malformed() {
  return {StatusCode::kCorruption, "the record of the bucket's epochs is malformed"};
}

}  // namespace

void EpochFloors::Begin(uint32_t epoch, SegmentId first) {
  // The newest floor holds for all earlier epochs, so it replaces those that are not lower.
  while (!floors_.empty() && (floors_.back().epoch >= epoch || floors_.back().first >= first))
    floors_.pop_back();
  floors_.push_back({epoch, first});
  if (floors_.size() > kMost) floors_.erase(floors_.begin());
}

bool EpochFloors::IsForeign(SegmentId id, uint32_t put_in) const {
  // Later floors are higher, so the first one after `put_in` decides.
  const auto floor =
      std::ranges::upper_bound(floors_, put_in, {}, [](const Floor& one) { return one.epoch; });
  return floor != floors_.end() && id >= floor->first;
}

std::string EpochFloors::Encode() const {
  Encoder out;
  for (const Floor& floor : floors_) out.U32(floor.epoch).U32(floor.first);
  return out.Take();
}

Result<EpochFloors> EpochFloors::Decode(std::string_view value) {
  constexpr size_t kFloorBytes = 8;
  if (value.size() % kFloorBytes != 0 || value.size() > kMost * kFloorBytes) return Malformed();
  Decoder in(AsBytes(value));
  EpochFloors decoded;
  for (size_t i = 0; i < value.size() / kFloorBytes; ++i) {
    Floor floor;
    floor.epoch = in.U32();
    floor.first = in.U32();
    const bool ascends = decoded.floors_.empty() || (decoded.floors_.back().epoch < floor.epoch &&
                                                     decoded.floors_.back().first < floor.first);
    if (!ascends) return Malformed();
    decoded.floors_.push_back(floor);
  }
  return decoded;
}

Result<EpochFloors> ReadEpochFloors(const KvSnapshot& metadata) {
  SILTFS_ASSIGN_OR_RETURN(const auto value, metadata.Get(kEpochFloorsKey));
  if (!value) return EpochFloors();
  auto floors = EpochFloors::Decode(*value);
  if (!floors.status().Is(StatusCode::kCorruption)) return floors;
  return EpochFloors();
}

Result<SegmentId> FirstUnusedSegment(const KvSnapshot& metadata) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentId recorded, EndOf(metadata, Table::kSegment, &SegmentKey));
  SILTFS_ASSIGN_OR_RETURN(const SegmentId removed,
                          EndOf(metadata, Table::kRemovedSegment, &RemovedSegmentKey));
  return std::max(recorded, removed);
}

}  // namespace siltfs
