// The read path of chunks: name -> location (footer cache, index, and in the end the segments
// themselves) -> block (decoded-block cache, flash) -> bytes.
//
// Thread-safety: every call from any thread. Errors: kCorruption with the path and offset of the
// damage, or with the name of a chunk that is in no segment; kIoError. Never wrong bytes: the
// block's checksums are verified when it is read, and its chunk table must name the chunk. A
// damaged block is put on the list of damage. Cost: a chunk that is damaged, or whose index entry
// is lost or wrong, takes a search through all footers, 16 bytes a chunk of the store.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "fs/dedup/block_cache.h"
#include "fs/dedup/damage_list.h"
#include "fs/dedup/footer_cache.h"
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
    // Called, without a lock, when a block was put on the list of damage. May be empty.
    std::function<void()> on_damage;
    // Whether bytes have the name and tag of this record. Called for chunks on the list of damage
    // that can be read all the same. May be empty.
    std::function<bool(const ChunkRecord& record, ByteView bytes)> is_right;
  };
  // All must outlive the reader.
  ChunkReader(Env& env, SegmentCache& segments, ChunkIndex& index, FooterCache& windows,
              DamageList& damage, Options options);

  // The read cursor: the place behind the chunk that was read last. Chunks of a file mostly lie one
  // after another, so the next one is found without a look-up. Belongs to one reader of one file,
  // not thread-safe; holds a block.
  struct ReadCursor {
    DecodedBlockPtr block;
    uint32_t block_offset = 0;  // in the segment
    SegmentFile file = SegmentFile::kUnknown;
    size_t next = 0;  // chunk of the block that is read next
  };

  struct Found {
    DecodedBlockPtr block;
    ByteView bytes;
  };
  Result<Found> Get(const ChunkName& name, uint32_t length, ReadCursor& read_cursor);
  // Finds the chunk only if it is the next one at the read cursor.
  std::optional<Found> Follow(const ChunkName& name, uint32_t length, ReadCursor& read_cursor);

  // Where a chunk lies, as far as it is known without reading blocks.
  struct Place {
    SegmentId segment = kNoSegment;
    uint32_t ordinal = 0;
    SegmentFile file = SegmentFile::kUnknown;  // which block_offset refers to
    uint32_t block_offset = 0;
    uint32_t end_ordinal = 0;  // the block's chunks end before it
    uint32_t plain_bytes = 0;  // of the block, about; 0: not known
    size_t block_bytes = kUsualBlockBytes;
  };
  // places[i] becomes the place of names[i], or empty if it is unknown. A hint. `last` is the place
  // of the chunk before names[0], if known, and becomes that of the last one found. Reads footers
  // and index.
  void Locate(std::span<const ChunkName> names, Place& last,
              std::span<std::optional<Place>> places);
  // Decodes the block at the place into the cache, unless it is there or being decoded. Errors are
  // dropped; the read of a chunk in it reports them.
  void Prefetch(const Place& place);

  // The chunk table's record at the place of an index entry; empty if there is no chunk. Fails if
  // there may be one that cannot be read.
  Result<std::optional<ChunkRecord>> RecordAt(const Location& location);

  uint64_t blocks_decoded() const { return blocks_.decoded(); }

  // Loads the footer entries around a place into the footer cache. A hint: failures are dropped.
  void LoadWindow(SegmentId segment, uint32_t ordinal);

 private:
  // The block that holds the location's ordinal; null if the segment has no such ordinal. Fails if
  // there may be one that cannot be read. `hint_failure` is set if the segment has no such ordinal
  // and the bytes at the location's offset cannot be read: either the entry is stale, or it led to
  // the last block of a segment that was sealed without it because of damage.
  struct Block {
    DecodedBlockPtr block;
    uint32_t offset = 0;  // in the segment
    SegmentFile file = SegmentFile::kUnknown;
  };
  Result<Block> BlockAt(const Location& location, bool offset_known, Status& hint_failure);
  Result<Block> FindBlockAt(const Location& location, bool offset_known, Status& hint_failure);
  // Lists the unreadable chunk there, and all chunks lost together with it, as damaged.
  void NoteDamage(const Location& location);
  // The chunk at a place that may be wrong: empty if another chunk or nothing is there. Fails if
  // the chunk may be there but cannot be read.
  Result<std::optional<Found>> ReadAt(const Location& location, bool offset_known,
                                      const ChunkName& name, uint32_t length,
                                      ReadCursor& read_cursor);
  // Uses the footer cache, above all the entries around `last`.
  std::optional<Place> LocateInWindows(const ChunkName& name, const Place& last);
  std::optional<Place> PlaceOf(SegmentId segment, uint32_t ordinal, const Place& last);
  Result<DecodedBlockPtr> ReadBlock(const OpenSegment& segment, uint32_t offset,
                                    size_t expected_bytes = kUsualBlockBytes);
  // The first failure met on the way to a chunk: reported if the chunk is not found elsewhere.
  class Damage;
  // Searches the footers of all segments. `location`: where the index led without success.
  std::optional<Found> SearchSegments(const ChunkName& name, uint32_t length,
                                      const std::optional<Location>& location, Damage& damage,
                                      ReadCursor& read_cursor);
  std::vector<uint64_t> LostTogether(const std::optional<Location>& location) const;

  SegmentCache& segments_;
  ChunkIndex& index_;
  FooterCache& windows_;
  DamageList& damage_;
  const std::string store_;
  SegmentSearch search_;
  const std::function<void()> on_damage_;
  const std::function<bool(const ChunkRecord&, ByteView)> is_right_;
  std::unordered_map<ChunkName, Location> unindexed_;  // constant after construction
  BlockCache blocks_;
};

}  // namespace siltfs
