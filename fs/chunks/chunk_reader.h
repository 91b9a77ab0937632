// The read path of chunks: name -> location (from the footer cache, the index, or a search of all
// segments) -> block (decoded-block cache, flash) -> bytes.
//
// Thread-safety: every call from any thread. Errors: kCorruption with the path and offset of the
// damage, or with the name of a chunk that is in no segment; kIoError. Wrong bytes are never
// returned: a block's checksums are verified when it is read, and its chunk table must name the
// chunk. A damaged block is put on the damage list. Cost: if a chunk is damaged, or its index entry
// is lost or wrong, the reader searches footers: those of a few segments with a segment guide, else
// all. Footers have 16 bytes for each chunk of the store.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "fs/chunks/block_cache.h"
#include "fs/chunks/footer_cache.h"
#include "fs/chunks/segment_search.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/segment_cache.h"
#include "index/chunk_index.h"

namespace siltfs {

class ChunkReader {
 public:
  struct Options {
    std::string store;
    size_t block_cache_bytes = 0;
    // Says which segments may hold a chunk. Must outlive the reader; may be null.
    SegmentGuide* guide = nullptr;
    // Entries that a read-only mount could not put into the index.
    std::vector<IndexEntry> unindexed;
    // Called, without a lock, when a block was put on the damage list. May be empty.
    std::function<void()> on_damage;
    // Returns whether `bytes` have the name and tag of `record`. Called for chunks that are on the
    // damage list but can be read. May be empty.
    std::function<bool(const ChunkRecord& record, ByteView bytes)> is_right;
  };
  // All must outlive the reader.
  ChunkReader(SegmentCache& segments, ChunkIndex& index, FooterCache& windows, DamageList& damage,
              Options options);

  // The read cursor: the position directly after the chunk that was read last. The chunks of a file
  // mostly lie one after another, so the next chunk is mostly found without a look-up. A cursor
  // belongs to one reader of one file. It is not thread-safe, and keeps a block in memory.
  struct ReadCursor {
    DecodedBlockPtr block;
    uint32_t block_offset = 0;  // in the segment
    SegmentFile file = SegmentFile::kUnknown;
    size_t next = 0;  // the position, in the block, of the chunk to read next
  };

  struct Found {
    DecodedBlockPtr block;
    ByteView bytes;
  };
  Result<Found> Get(const ChunkName& name, uint32_t length, ReadCursor& read_cursor);
  // Finds the chunk only if it is the next one at the read cursor.
  std::optional<Found> Follow(const ChunkName& name, uint32_t length, ReadCursor& read_cursor);

  // Finds the chunk only if it is the next one at the read cursor, or lies at the location. Empty
  // also if the chunk there cannot be read; Get then finds the reason.
  std::optional<Found> FindAt(const Location& location, const ChunkName& name, uint32_t length,
                              ReadCursor& read_cursor);

  // Where a chunk lies, as far as it is known without reading blocks.
  struct Place {
    SegmentId segment = kNoSegment;
    uint32_t ordinal = 0;
    SegmentFile file = SegmentFile::kUnknown;  // the file that block_offset refers to
    uint32_t block_offset = 0;
    uint32_t end_ordinal = 0;  // one beyond the block's last chunk
    uint32_t plain_bytes = 0;  // of the block, estimated; 0: unknown
    size_t block_bytes = kUsualBlockBytes;
  };
  // Sets places[i] to the place of names[i], or to empty if it is unknown. The places are hints.
  // `last` is the place of the chunk before names[0], if known. Locate sets it to the place of the
  // last chunk found. Reads footers and the index.
  void Locate(std::span<const ChunkName> names, Place& last,
              std::span<std::optional<Place>> places);
  // Decodes the block at the place into the cache, unless it is cached or being decoded. Errors are
  // dropped; a read of a chunk in the block reports them.
  void Prefetch(const Place& place);

  // Returns the chunk table's record of the chunk at `location`; empty if no chunk lies there.
  // Fails if a chunk may lie there but cannot be read.
  Result<std::optional<ChunkRecord>> RecordAt(const Location& location);

  uint64_t blocks_decoded() const { return blocks_.decoded(); }
  // Segments that were read to search chunks.
  uint64_t segments_searched() const { return search_.segments_read(); }

  // Loads the footer entries around a place into the footer cache. Failures are dropped, because
  // reads do not depend on the cache.
  void LoadWindow(SegmentId segment, uint32_t ordinal);

 private:
  // The block that holds the location's ordinal; null if the segment has no such ordinal. BlockAt
  // fails if the segment may have the ordinal, but its block cannot be read. BlockAt sets
  // `hint_failure` if the segment has no such ordinal and the bytes at the location's offset cannot
  // be read. In this case the index entry is stale, or it leads to the segment's last block, which
  // was damaged and was left out when the segment was sealed.
  struct Block {
    DecodedBlockPtr block;
    uint32_t offset = 0;  // in the segment
    SegmentFile file = SegmentFile::kUnknown;
  };
  Result<Block> BlockAt(const Location& location, bool offset_known, Status& hint_failure);
  Result<Block> FindBlockAt(const Location& location, bool offset_known, Status& hint_failure);
  // Puts the unreadable chunk at `location`, and all chunks lost together with it, on the damage
  // list.
  void NoteDamage(const Location& location);
  // Reads the chunk at a place that may be wrong. Empty if the place holds another chunk or none.
  // Fails if the chunk may lie there but cannot be read.
  Result<std::optional<Found>> ReadAt(const Location& location, bool offset_known,
                                      const ChunkName& name, uint32_t length,
                                      ReadCursor& read_cursor);
  // Finds the chunk in the footer cache, preferably next to `last`.
  std::optional<Place> LocateInWindows(const ChunkName& name, const Place& last);
  std::optional<Place> PlaceOf(SegmentId segment, uint32_t ordinal, const Place& last);
  Result<DecodedBlockPtr> ReadBlock(const OpenSegment& segment, uint32_t offset,
                                    size_t expected_bytes = kUsualBlockBytes);
  // The first failure in the search for a chunk. It is reported if the chunk is not found anywhere.
  class Damage;
  // Searches the footers of segments. `location` is the location to which the index leads, at
  // which the chunk could not be read; empty if there is none.
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
