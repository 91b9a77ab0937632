#include "index/key_value/open_value_block.h"

#include <cassert>

namespace siltfs {

bool OpenValueBlock::Takes(size_t length, size_t block_bytes) const {
  if (empty()) return true;
  const size_t taken = plain_bytes() + records() * kChunkTableEntrySize;
  return records() < kMaxBlockChunks && plain_bytes() + length <= kMaxBlockPlainBytes &&
         taken + CostOf(length) <= block_bytes;
}

void OpenValueBlock::Begin(SegmentId segment, const BlockPlace& place) {
  assert(empty());
  segment_ = segment;
  place_ = place;
}

Location OpenValueBlock::Add(const ChunkRecord& record, ByteView bytes) {
  const Location location{segment_, place_.first_ordinal + static_cast<uint32_t>(records()),
                          place_.block_offset};
  offsets_.push_back(static_cast<uint32_t>(plain_bytes()));
  block_.plain.insert(block_.plain.end(), bytes.begin(), bytes.end());
  block_.records.push_back(record);
  return location;
}

bool OpenValueBlock::IsAt(const Location& location) const {
  return !empty() && location.segment == segment_ && location.block_offset == place_.block_offset;
}

std::optional<ByteView> OpenValueBlock::Find(const ChunkName& name,
                                             const Location& location) const {
  if (!IsAt(location) || location.ordinal < place_.first_ordinal) return std::nullopt;
  const size_t i = location.ordinal - place_.first_ordinal;
  if (i >= records() || block_.records[i].name != name) return std::nullopt;
  return ByteView(block_.plain).subspan(offsets_[i], block_.records[i].length);
}

void OpenValueBlock::Clear() {
  block_.records.clear();
  block_.plain.clear();
  offsets_.clear();
}

}  // namespace siltfs
