// The block in which a value log gathers records before writing it. The block's place in the
// segment is fixed when the block is begun, so each record has its location at once. Not
// thread-safe: the owner locks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "store/base/location.h"
#include "store/segment/block.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

class OpenValueBlock {
 public:
  // Space of a record in a block: its bytes and its entry in the block's table.
  static size_t CostOf(size_t length) { return length + kChunkTableEntrySize; }

  bool empty() const { return block_.records.empty(); }
  size_t records() const { return block_.records.size(); }
  size_t plain_bytes() const { return block_.plain.size(); }
  // Whether a record of `length` bytes fits into this block if blocks have about `block_bytes`
  // bytes. An empty block takes any record.
  bool Takes(size_t length, size_t block_bytes) const;

  // Begins a block at this place. The previous one must be empty.
  void Begin(SegmentId segment, const BlockPlace& place);
  // Adds a record and returns its location. record.length == bytes.size(), within the format's
  // limits.
  Location Add(const ChunkRecord& record, ByteView bytes);

  // Whether the location lies in this block.
  bool IsAt(const Location& location) const;
  // The bytes of the record at `location`, valid until the block changes. Empty if that record has
  // another name.
  std::optional<ByteView> Find(const ChunkName& name, const Location& location) const;

  const PlainBlock& block() const { return block_; }
  void Clear();

 private:
  SegmentId segment_ = kNoSegment;
  BlockPlace place_;
  PlainBlock block_;
  std::vector<uint32_t> offsets_;  // offsets of the records in block_.plain
};

}  // namespace siltfs
