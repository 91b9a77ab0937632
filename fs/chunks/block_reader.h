// Reads the blocks in which chunks lie: location -> block (decoded-block cache, flash). Deltas stay
// as they are stored. Damaged blocks are put on the damage list.
//
// Thread-safety: every call from any thread. Errors: kCorruption with the path and offset of the
// damage; kIoError. Memory: the block cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "fs/chunks/block_cache.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/segment_cache.h"
#include "store/base/location.h"
#include "store/base/result.h"
#include "store/segment/block.h"

namespace siltfs {

// The size with which a block is read: that of the block table, if it is likely.
size_t ExpectedBytes(const BlockTable::Found& found);

class BlockReader {
 public:
  // `on_damage` is called, without a lock, when chunks were put on the damage list; may be empty.
  // All must outlive the reader.
  BlockReader(SegmentCache& segments, DamageList& damage, size_t cache_bytes,
              std::function<void()> on_damage);

  struct Block {
    DecodedBlockPtr block;  // null if the segment has no such ordinal
    uint32_t offset = 0;    // in the segment
    SegmentFile file = SegmentFile::kUnknown;
  };
  // Returns the block that holds the location's ordinal. Fails if the segment may have the ordinal,
  // but its block cannot be read. Sets `hint_failure` if the segment has no such ordinal and the
  // bytes at the location's offset cannot be read. In this case the index entry is stale, or it
  // leads to the segment's last block, which was damaged and was left out when the segment was
  // sealed.
  Result<Block> BlockAt(const Location& location, bool offset_known, Status& hint_failure);

  // The block, if it is cached; else null.
  DecodedBlockPtr FindCached(const BlockCache::Place& place) { return blocks_.Find(place); }
  // Decodes the block at this offset of the file into the cache, unless it is cached or being
  // decoded. Errors are dropped.
  void Prefetch(const OpenSegment& segment, uint32_t offset, size_t expected_bytes);

  // Puts one chunk, which is a delta and cannot be inflated, on the damage list.
  void NoteDelta(const Location& location, const ChunkRecord& record);

  uint64_t blocks_decoded() const { return blocks_.decoded(); }
  uint64_t block_hits() const { return blocks_.hits(); }

 private:
  Result<Block> FindBlockAt(const Location& location, bool offset_known, Status& hint_failure);
  Result<DecodedBlockPtr> ReadBlock(const OpenSegment& segment, uint32_t offset,
                                    size_t expected_bytes);
  // Puts the unreadable chunk at `location`, and all chunks lost together with it, on the damage
  // list.
  void NoteDamage(const Location& location);
  void Note(const DamagedBlock& damaged);

  SegmentCache& segments_;
  DamageList& damage_;
  const std::function<void()> on_damage_;
  BlockCache blocks_;
};

}  // namespace siltfs
