// The footer that seals a segment: its chunks' names and tags in short, in log order, and where its
// blocks begin. Byte by byte in docs/format.md ("Footers"). Pure functions of bytes; any thread.
// Errors: see segment_format.h.
//
// A duplicate found in the index brings in a window of this table: the names and tags around it
// (DESIGN, duplicate locality). 64 bits of name and 64 of tag tell chunks apart in RAM; the block's
// chunk table has the last word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"
#include "store/segment/block_head.h"
#include "store/segment/segment_format.h"

namespace siltfs {

inline constexpr uint32_t kFooterChunkSize = 16;
inline constexpr uint32_t kFooterBlockSize = 8;
inline constexpr uint32_t kSegmentTrailerSize = 64;

struct FooterChunk {
  uint64_t name_prefix = 0;  // ChunkName::Prefix64
  ChunkTag tag = 0;

  auto operator<=>(const FooterChunk&) const = default;
};

// Where a block begins, in both coordinates.
struct BlockPlace {
  uint32_t block_offset = 0;   // bytes from the start of the segment's file
  uint32_t first_ordinal = 0;  // of its first chunk

  auto operator<=>(const BlockPlace&) const = default;
};

// The last 64 bytes of a sealed segment.
struct SegmentTrailer {
  SegmentKind kind = SegmentKind::kData;
  uint32_t chunk_count = 0;
  uint32_t block_count = 0;
  uint32_t data_end = 0;  // where the last block ends and the footer begins
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t plain_bytes = 0;
  uint64_t tables_checksum = 0;

  uint64_t chunk_table_offset() const { return data_end; }
  uint64_t block_table_offset() const {
    return data_end + uint64_t{chunk_count} * kFooterChunkSize;
  }
  uint64_t trailer_offset() const {
    return block_table_offset() + uint64_t{block_count} * kFooterBlockSize;
  }
  uint64_t file_size() const { return trailer_offset() + kSegmentTrailerSize; }

  bool operator==(const SegmentTrailer&) const = default;
};

// Where the blocks of a sealed segment whose footer is lost end at the latest, by what is known of
// it otherwise: below that, bad blocks are damage.
uint64_t LastDataEnd(uint64_t sealed_length, uint64_t chunk_count);

// The block whose chunks include this ordinal, if any block's do: the last one that begins at or
// below it.
std::optional<BlockPlace> FindBlockPlace(const std::vector<BlockPlace>& blocks, uint32_t ordinal);

// The block table of a sealed segment, for finding blocks without the rest of the footer.
struct BlockTable {
  std::vector<BlockPlace> blocks;  // ascending in both coordinates
  uint32_t chunk_count = 0;        // of the segment
  uint32_t data_end = 0;
  uint64_t plain_bytes = 0;  // of the segment

  struct Found {
    BlockPlace place;
    uint32_t end_ordinal = 0;  // no chunk from here on is in this block
    uint32_t bytes = 0;        // at most, on disk
    uint32_t plain_bytes = 0;  // about: its share of the segment's, by its chunks
  };
  // A binary search. Empty if there is no such ordinal; a block found for a lost ordinal doesn't
  // cover it, and where the first ones are lost need not be one.
  std::optional<Found> Find(uint32_t ordinal) const;
  size_t memory_bytes() const { return sizeof *this + blocks.capacity() * sizeof(BlockPlace); }
};

struct SegmentFooter {
  SegmentTrailer trailer;
  std::vector<FooterChunk> chunks;  // by ordinal; all zero for one that was lost to damage
  std::vector<BlockPlace> blocks;   // ascending in both coordinates

  // Enters the next block of the segment: its chunks, and the totals in the trailer.
  void Add(const BlockPlace& place, const std::vector<ChunkRecord>& records, uint64_t sequence,
           uint64_t end_offset);
  // Empty if the segment has no such ordinal. A block found for a lost ordinal doesn't cover it.
  std::optional<BlockPlace> FindBlock(uint32_t ordinal) const;
};

// Both tables and the trailer; fills in trailer.chunk_count, block_count and tables_checksum by the
// tables.
std::string EncodeSegmentFooter(SegmentFooter& footer, const SegmentIdentity& identity);

// Whether a file that ends in these kSegmentTrailerSize bytes claims to be sealed. Says nothing of
// damage.
bool LooksLikeTrailer(ByteView bytes);
// Checks the trailer against itself and the file's size, so that the tables' sizes may be believed
// afterwards.
Result<SegmentTrailer> DecodeSegmentTrailer(ByteView bytes, const SegmentIdentity& identity,
                                            uint64_t file_size);

// Parts of the tables; bytes.size() is a multiple of the entry's size.
std::vector<FooterChunk> DecodeFooterChunks(ByteView bytes);
std::vector<BlockPlace> DecodeFooterBlocks(ByteView bytes);

// `tables` is everything between data_end and the trailer; its checksum and order are verified.
Result<SegmentFooter> DecodeSegmentFooter(const SegmentTrailer& trailer, ByteView tables,
                                          const SegmentIdentity& identity);

}  // namespace siltfs
