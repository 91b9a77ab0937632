// The block of a value log that records are gathered in, before it is written. Its place in the
// segment is known from its beginning, so that each record has its location at once.
//
// Not thread-safe: whoever owns it locks.
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
  // What a record takes of a block's room: its bytes and its entry in the block's table.
  static size_t CostOf(size_t length) { return length + kChunkTableEntrySize; }

  bool empty() const { return block_.records.empty(); }
  size_t records() const { return block_.records.size(); }
  size_t plain_bytes() const { return block_.plain.size(); }
  // Whether a record may be added to a block of about this many bytes. An empty block takes any.
  bool Takes(size_t length, size_t block_bytes) const;

  // Only while it is empty.
  void Begin(SegmentId segment, const BlockPlace& place);
  // The record's location. record.length == bytes.size(), and it is within the format's limits.
  Location Add(const ChunkRecord& record, ByteView bytes);

  // Whether the location lies in this block.
  bool IsAt(const Location& location) const;
  // The record's bytes, valid until the next change. Empty if this is not the one of that name.
  std::optional<ByteView> Find(const ChunkName& name, const Location& location) const;

  const PlainBlock& block() const { return block_; }
  void Clear();

 private:
  SegmentId segment_ = kNoSegment;
  BlockPlace place_;
  PlainBlock block_;
  std::vector<uint32_t> offsets_;  // of the records in block_.plain
};

}  // namespace siltfs
