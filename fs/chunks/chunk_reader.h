// The read path of chunks: name -> location (from the footer cache, the index, or a search of all
// segments) -> block (decoded-block cache, flash) -> bytes.
//
// Thread-safety: every call from any thread. Errors: kCorruption with the path and offset of the
// damage, or with the name of a chunk that is in no segment; kIoError. Wrong bytes are never
// returned: a block's checksums are verified when it is read, and its chunk table must name the
// chunk. A damaged block is put on the damage list. A chunk that is stored as a delta is inflated
// from its base (base_reader.h). If no copy of the base can be read, the chunk is damaged, and is
// put on the list alone. Cost: if a chunk is damaged, or its index entry
// is lost or wrong, the reader searches footers: those of a few segments with a segment guide, else
// all. Footers have 16 bytes for each chunk of the store.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fs/chunks/base_reader.h"
#include "fs/chunks/block_reader.h"
#include "fs/chunks/chunk_places.h"
#include "fs/chunks/footer_cache.h"
#include "fs/guide/segment_guide.h"
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
    IsRightChunk is_right;
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

  // The bytes of a chunk; `owner` keeps them alive.
  struct Found {
    std::shared_ptr<const void> owner;
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
  // Decodes the block at the place into the cache, unless it is cached or being decoded, and also
  // the blocks with the bases of the block's deltas from place.ordinal to `last`. Errors are
  // dropped; a read of a chunk in the block reports them.
  void Prefetch(const Place& place, uint32_t last);

  // Returns the chunk table's record of the chunk at `location`; empty if no chunk lies there.
  // Fails if a chunk may lie there but its block cannot be read. Does not inflate deltas.
  Result<std::optional<ChunkRecord>> RecordAt(const Location& location);

  // Like RecordAt, but fails also if the chunk is a delta that cannot be inflated, and then puts it
  // on the damage list. So the chunk can be read at the location, unless its base becomes damaged
  // later.
  Result<std::optional<ChunkRecord>> ReadableAt(const Location& location);

  // Reads bases with the caches of this reader.
  BaseReader& bases() { return bases_; }
  ChunkPlaces& places() { return places_; }

  uint64_t blocks_decoded() const { return blocks_.blocks_decoded(); }
  uint64_t block_hits() const { return blocks_.block_hits(); }
  // Segments that were read to search chunks.
  uint64_t segments_searched() const { return places_.segments_searched(); }

  // Loads the footer entries around a place into the footer cache. Failures are dropped, because
  // reads do not depend on the cache.
  void LoadWindow(SegmentId segment, uint32_t ordinal) { places_.LoadWindow(segment, ordinal); }

 private:
  // How much is done for a chunk that is a delta, if its base is not found at once.
  enum class Effort : uint8_t {
    kReadOnce,    // nothing: it counts as unreadable
    kSearchBase,  // the base is searched in all segments
  };
  // Reads the chunk at a place that may be wrong. Empty if the place holds another chunk or none.
  // Fails if the chunk may lie there but cannot be read.
  Result<std::optional<Found>> ReadAt(const Location& location, bool offset_known,
                                      const ChunkName& name, uint32_t length, Effort effort,
                                      ReadCursor& read_cursor);
  // Inflates the delta at `location` of the block. If it cannot be inflated in spite of all effort,
  // puts it on the damage list.
  Result<Found> Inflate(const Location& location, const BlockReader::Block& at, Effort effort);
  void PrefetchBases(const DecodedBlock& block, uint32_t first, uint32_t last);
  Result<std::optional<ChunkRecord>> RecordAt(const Location& location, bool inflate);
  // Finds the chunk in the footer cache, preferably next to `last`.
  std::optional<Place> LocateInWindows(const ChunkName& name, const Place& last);
  std::optional<Place> PlaceOf(SegmentId segment, uint32_t ordinal, const Place& last);
  // The name prefixes of all chunks lost together with the chunk at the location.
  std::vector<uint64_t> LostTogether(const std::optional<Location>& location) const;

  SegmentCache& segments_;
  FooterCache& windows_;
  DamageList& damage_;
  const std::string store_;
  const IsRightChunk is_right_;
  BlockReader blocks_;
  ChunkPlaces places_;
  BaseReader bases_;
};

}  // namespace siltfs
