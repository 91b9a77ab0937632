// The read path of chunks: name -> location (footer window, index, and in the end the segments
// themselves) -> block (decoded-block cache, flash) -> bytes.
//
// Thread-safety: every call from any thread. Errors: kCorruption with the path and offset of the
// damage, or naming a chunk that is nowhere to be found; kIoError. Never wrong bytes: the block's
// checksums are verified when it is read, and its chunk table must name the chunk. A block that is
// damaged is put on the list of damage. Cost: a chunk that is damaged, or whose index entry is lost
// or wrong, takes a search through all footers, 16 bytes a chunk of the store.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "fs/dedup/block_cache.h"
#include "fs/dedup/damage_list.h"
#include "fs/dedup/footer_windows.h"
#include "fs/dedup/segment_cache.h"
#include "fs/dedup/segment_search.h"
#include "index/chunk_index.h"

namespace siltfs {

class ChunkReader {
 public:
  struct Options {
    std::string store;
    size_t block_cache_bytes = 12u << 20;
    // Entries that a read-only mount could not put into the index.
    std::vector<IndexEntry> unindexed;
    // Told when a block was put on the list of damage. Holds no lock. May be empty.
    std::function<void()> on_damage;
    // Whether bytes are the chunk that this record is of, by name and tag: asked of what is on the
    // list of damage and can be read all the same. May be empty.
    std::function<bool(const ChunkRecord& record, ByteView bytes)> is_right;
  };
  // All must outlive the reader.
  ChunkReader(Env& env, SegmentCache& segments, ChunkIndex& index, FooterWindows& windows,
              DamageList& damage, Options options);

  // Where the chunk lay that was got last: chunks of a file mostly lie one after another, and the
  // next one is then found without asking anybody. Of one reader of one file, not thread-safe;
  // holds a block.
  struct Trail {
    DecodedBlockPtr block;
    uint32_t block_offset = 0;  // in the segment
    SegmentFile file = SegmentFile::kUnknown;
    size_t next = 0;  // in the block, behind that chunk
  };

  struct Found {
    DecodedBlockPtr block;
    ByteView bytes;
  };
  Result<Found> Get(const ChunkName& name, uint32_t length, Trail& trail);
  // As far as the trail leads, and no further.
  std::optional<Found> Follow(const ChunkName& name, uint32_t length, Trail& trail);

  // Where a chunk lies, as far as it can be said without reading blocks.
  struct Place {
    SegmentId segment = kNoSegment;
    uint32_t ordinal = 0;
    SegmentFile file = SegmentFile::kUnknown;  // that the offset is of
    uint32_t block_offset = 0;
    uint32_t end_ordinal = 0;  // no chunk from here on is in the block
    uint32_t plain_bytes = 0;  // of the block, about; 0: not known
    size_t block_bytes = kUsualBlockBytes;
  };
  // places[i] is names[i]'s, empty where it is not known. A hint. `last` is where the chunk before
  // names[0] was found, if anywhere, and becomes where the last one was. Reads footers and index.
  void Locate(std::span<const ChunkName> names, Place& last,
              std::span<std::optional<Place>> places);
  // Decodes the block at the place into the cache, unless it is there or on its way; whether it
  // fails is for those to find out who want a chunk of it.
  void Prefetch(const Place& place);

  // What the chunk table says of the place an index entry points to; empty if there is no chunk.
  // Fails where there may be one that cannot be read.
  Result<std::optional<ChunkRecord>> RecordAt(const Location& location);

  uint64_t blocks_decoded() const { return blocks_.decoded(); }

  // Brings in the footer window around a place, if it can be had. A hint: failures leave it out.
  void LoadWindow(SegmentId segment, uint32_t ordinal);

 private:
  // The block that holds the location's ordinal; null if the segment has no such. Fails where there
  // may be one that cannot be read. `hint_failure` is set where the segment has no such ordinal and
  // what stands at the location's offset cannot be read: a stale entry, or the last block of a
  // segment that was sealed without it because it was damaged.
  struct Block {
    DecodedBlockPtr block;
    uint32_t offset = 0;  // in the segment
    SegmentFile file = SegmentFile::kUnknown;
  };
  Result<Block> BlockAt(const Location& location, bool offset_known, Status& hint_failure);
  Result<Block> FindBlockAt(const Location& location, bool offset_known, Status& hint_failure);
  // The chunk there cannot be read, and with it all that was lost together with it.
  void NoteDamage(const Location& location);
  // The chunk at a place that may be wrong: empty if another chunk or nothing is there. Fails where
  // it may have been but cannot be read.
  Result<std::optional<Found>> ReadAt(const Location& location, bool offset_known,
                                      const ChunkName& name, uint32_t length, Trail& trail);
  // By the footer windows that are here, above all the one in which `last` lies.
  std::optional<Place> LocateInWindows(const ChunkName& name, const Place& last);
  std::optional<Place> PlaceOf(SegmentId segment, uint32_t ordinal, const Place& last);
  Result<DecodedBlockPtr> ReadBlock(const OpenSegment& segment, uint32_t offset,
                                    size_t expected_bytes = kUsualBlockBytes);
  // The first failure met on the way to a chunk: what to report if it is not found elsewhere.
  class Damage;
  // Looks through the footers of all segments. `location`: where the index led to, in vain.
  std::optional<Found> SearchSegments(const ChunkName& name, uint32_t length,
                                      const std::optional<Location>& location, Damage& damage,
                                      Trail& trail);
  std::vector<uint64_t> LostTogether(const std::optional<Location>& location) const;

  SegmentCache& segments_;
  ChunkIndex& index_;
  FooterWindows& windows_;
  DamageList& damage_;
  const std::string store_;
  SegmentSearch search_;
  const std::function<void()> on_damage_;
  const std::function<bool(const ChunkRecord&, ByteView)> is_right_;
  std::unordered_map<ChunkName, Location> unindexed_;  // constant after construction
  BlockCache blocks_;
};

}  // namespace siltfs
