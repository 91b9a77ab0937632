#include "fs/records/epoch_floors.h"

#include <algorithm>
#include <optional>

#include "fs/records/schema.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kVersion = 1;
constexpr SegmentId kMaskBits = 64;

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

void EpochFloors::Begin(uint32_t epoch, const UnusedSegments& unused) {
  // The newest floor holds for all earlier epochs, so it replaces those that are not lower.
  while (!floors_.empty() &&
         (floors_.back().epoch >= epoch || floors_.back().unused.first >= unused.first))
    floors_.pop_back();
  floors_.push_back({epoch, unused});
  if (floors_.size() > kMost) floors_.erase(floors_.begin());
}

bool EpochFloors::IsForeign(SegmentId id, uint32_t put_in) const {
  // Later floors are higher, so the first one after `put_in` decides.
  const auto floor =
      std::ranges::upper_bound(floors_, put_in, {}, [](const Floor& one) { return one.epoch; });
  if (floor == floors_.end()) return false;
  const UnusedSegments& unused = floor->unused;
  if (id >= unused.first) return true;
  const SegmentId below = unused.first - 1 - id;
  return below < kMaskBits && (unused.below_mask >> below & 1) != 0;
}

std::string EpochFloors::Encode() const {
  Encoder out;
  out.U8(kVersion);
  for (const Floor& floor : floors_)
    out.U32(floor.epoch).U32(floor.unused.first).U64(floor.unused.below_mask);
  return out.Take();
}

Result<EpochFloors> EpochFloors::Decode(std::string_view value) {
  constexpr size_t kFloorBytes = 16;
  if (value.size() % kFloorBytes != 1 || value.size() > 1 + kMost * kFloorBytes) return Malformed();
  Decoder in(AsBytes(value));
  if (in.U8() != kVersion) return Malformed();
  EpochFloors decoded;
  for (size_t i = 0; i < value.size() / kFloorBytes; ++i) {
    Floor floor;
    floor.epoch = in.U32();
    floor.unused.first = in.U32();
    floor.unused.below_mask = in.U64();
    const bool ascends =
        decoded.floors_.empty() || (decoded.floors_.back().epoch < floor.epoch &&
                                    decoded.floors_.back().unused.first < floor.unused.first);
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

Result<UnusedSegments> ReadUnusedSegments(const KvSnapshot& metadata) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentId recorded, EndOf(metadata, Table::kSegment, &SegmentKey));
  SILTFS_ASSIGN_OR_RETURN(const SegmentId removed,
                          EndOf(metadata, Table::kRemovedSegment, &RemovedSegmentKey));
  UnusedSegments unused;
  unused.first = std::max(recorded, removed);
  for (SegmentId below = 0; below < std::min(unused.first, kMaskBits); ++below) {
    const SegmentId id = unused.first - 1 - below;
    SILTFS_ASSIGN_OR_RETURN(const auto record, metadata.Get(SegmentKey(id)));
    if (record) continue;
    SILTFS_ASSIGN_OR_RETURN(const auto removal, metadata.Get(RemovedSegmentKey(id)));
    if (!removal) unused.below_mask |= uint64_t{1} << below;
  }
  return unused;
}

}  // namespace siltfs
