#include "fs/repair/overlay_repair.h"

#include <algorithm>
#include <utility>

#include "fs/records/schema.h"

namespace siltfs {
namespace {

std::vector<ChunkSlice> PartOfSlices(const std::vector<ChunkSlice>& slices, uint64_t begin,
                                     uint64_t end) {
  std::vector<ChunkSlice> part;
  uint64_t at = 0;
  for (const ChunkSlice& slice : slices) {
    const uint64_t from = std::max(begin, at);
    const uint64_t to = std::min(end, at + slice.length);
    if (from < to) {
      ChunkSlice& kept = part.emplace_back(slice);
      kept.skip += static_cast<uint32_t>(from - at);
      kept.length = static_cast<uint32_t>(to - from);
    }
    at += slice.length;
  }
  return part;
}

}  // namespace

OverlayExtent PartOf(const OverlayExtent& extent, uint64_t begin, uint64_t end) {
  OverlayExtent part;
  part.kind = extent.kind;
  part.length = end - begin;
  if (extent.kind == OverlayExtent::Kind::kPlain)
    part.plain = extent.plain.substr(begin, end - begin);
  if (extent.kind == OverlayExtent::Kind::kChunks)
    part.slices = PartOfSlices(extent.slices, begin, end);
  return part;
}

std::vector<PlacedExtent> WithoutLost(const PlacedExtent& placed,
                                      const std::function<bool(const ChunkSlice&)>& lost) {
  const std::vector<ChunkSlice>& slices = placed.extent.slices;
  if (std::none_of(slices.begin(), slices.end(), lost)) return {};
  std::vector<PlacedExtent> pieces;
  uint64_t offset = placed.offset;
  for (const ChunkSlice& slice : slices) {
    const bool hole = lost(slice);
    const auto kind = hole ? OverlayExtent::Kind::kHole : OverlayExtent::Kind::kChunks;
    if (pieces.empty() || pieces.back().extent.kind != kind)
      pieces.push_back({offset, {.kind = kind, .length = 0, .plain = {}, .slices = {}}});
    OverlayExtent& piece = pieces.back().extent;
    piece.length += slice.length;
    if (!hole) piece.slices.push_back(slice);
    offset += slice.length;
  }
  return pieces;
}

Status RepairOverlay(MetadataEdit& edit, uint64_t inode, uint64_t size) {
  const KeyRange range = RangeOf(Table::kOverlay, inode);
  const auto iterator = edit.snapshot().NewIteratorBelow(range.end);
  uint64_t taken = 0;  // end of the last kept extent
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const std::string key(iterator->key());
    const auto parts = ParseNumberedKey(Table::kOverlay, key);
    const auto extent = OverlayExtent::Decode(iterator->value());
    const bool usable = parts && extent.ok() && parts->number < size;
    const uint64_t begin = usable ? std::max(parts->number, taken) : 0;
    const uint64_t end = usable ? std::min(parts->number + extent->length, size) : 0;
    if (begin >= end) {
      edit.Remove(key);
      continue;
    }
    taken = end;
    if (begin == parts->number && end == parts->number + extent->length) continue;
    edit.Remove(key);
    edit.Put(OverlayKey(inode, begin),
             PartOf(*extent, begin - parts->number, end - parts->number).Encode());
  }
  return iterator->status();
}

Status RemoveOverlay(MetadataEdit& edit, uint64_t inode) { return RepairOverlay(edit, inode, 0); }

}  // namespace siltfs
