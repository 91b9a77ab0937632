// Finds the chunk at a location by the chunk table in its block's header. Only ReadAt and WholeAt
// read payloads.
//
// Thread-safety: every call from any thread. Memory: 8 MiB of block heads, 4 MiB of block tables,
// 64 open files.
#pragma once

#include <memory>
#include <optional>

#include "fs/check/check_context.h"
#include "store/base/lru_cache.h"
#include "store/segment/segment_reader.h"

namespace siltfs {

class ChunkFinder {
 public:
  explicit ChunkFinder(CheckContext& context);

  // Returns the chunk table's record for the location's ordinal; the location's offset is only a
  // hint. Empty if the segment has no such chunk. Fails if the chunk may exist, but cannot be read.
  Result<std::optional<ChunkRecord>> RecordAt(const Location& location);
  // The same for a chunk that is stored whole; empty if it is a delta. Reads the payload of a block
  // with deltas.
  Result<std::optional<ChunkRecord>> WholeAt(const Location& location);
  // Returns the chunk's bytes, verified. `bases` inflates it if it is a delta; without `bases`, a
  // delta is kCorruption. Requires that RecordAt finds the chunk.
  Result<std::shared_ptr<const Bytes>> ReadAt(const Location& location,
                                              BaseSource* bases = nullptr);

  // The block that holds the location's ordinal. kNotFound if there is none.
  struct Block {
    uint32_t offset = 0;  // in the segment
    BlockHead head;
  };
  Result<Block> BlockOf(const Location& location);

  Result<std::shared_ptr<SegmentReader>> Open(SegmentId segment);
  const BlockCodec& codec() const { return codec_; }

 private:
  using HeadPtr = std::shared_ptr<const Block>;

  // The block that holds the ordinal; null if there is none.
  Result<HeadPtr> HeadOf(const Location& location);
  Result<HeadPtr> ReadHead(SegmentId segment, uint32_t offset);
  // A segment's block table, from its footer or, if that is damaged, from a scan of the blocks.
  struct Table {
    BlockTable blocks;
    bool scanned = false;  // made by a scan, which found no whole block if `blocks` is empty
  };
  using TablePtr = std::shared_ptr<const Table>;
  Result<TablePtr> TableOf(SegmentId segment);
  Result<TablePtr> ScannedTableOf(SegmentId segment);
  Result<TablePtr> NotEmpty(SegmentId segment, TablePtr table) const;

  CheckContext& context_;
  const BlockCodec codec_;
  LruCache<SegmentId, SegmentReader> readers_;
  LruCache<uint64_t, const Block> heads_;
  LruCache<SegmentId, const Table> tables_;
};

}  // namespace siltfs
