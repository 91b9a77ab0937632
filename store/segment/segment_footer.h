// The footer that seals a segment: the beginnings of the names and the tags of its chunks, by
// ordinal, and the places of its blocks. docs/format.md ("Footer") lists all bytes. Pure functions
// of bytes; any thread. Errors: see segment_format.h.
//
// When the index has found a duplicate, the part of the footer's chunk table around the duplicate's
// entry is cached (duplicate locality, fs/chunks/deduplicator.h). In this cache, 64 bits of name
// and 64 bits of tag identify a chunk; the chunk table of the block is authoritative.
//
// The footer of a segment with deltas has version 2: a table of the bases of these deltas follows
// the block table. Garbage collection reads only this table, so it has its own checksum.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"
#include "store/segment/base_ref.h"
#include "store/segment/block_head.h"
#include "store/segment/segment_format.h"

namespace siltfs {

inline constexpr uint32_t kFooterChunkSize = 16;
inline constexpr uint32_t kFooterBlockSize = 8;
inline constexpr uint32_t kSegmentTrailerSize = 64;
inline constexpr uint32_t kBaseTableChecksumSize = 8;

struct FooterChunk {
  uint64_t name_prefix = 0;  // ChunkName::Prefix64
  ChunkTag tag = 0;

  auto operator<=>(const FooterChunk&) const = default;
};

// The beginning of a block, as offset and as ordinal.
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
  uint32_t data_end = 0;  // end of the last block, start of the footer
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t plain_bytes = 0;
  uint64_t tables_checksum = 0;
  // Entries of the base table; 0 for a segment without deltas, whose footer has version 1. Not
  // stored: it follows from the size of the file.
  uint32_t base_count = 0;

  uint64_t chunk_table_offset() const { return data_end; }
  uint64_t block_table_offset() const {
    return data_end + uint64_t{chunk_count} * kFooterChunkSize;
  }
  uint64_t base_table_offset() const {
    return block_table_offset() + uint64_t{block_count} * kFooterBlockSize;
  }
  // With the checksum; 0 without bases.
  uint64_t base_table_bytes() const {
    return base_count == 0 ? 0 : uint64_t{base_count} * kBaseRefSize + kBaseTableChecksumSize;
  }
  uint64_t trailer_offset() const { return base_table_offset() + base_table_bytes(); }
  uint64_t file_size() const { return trailer_offset() + kSegmentTrailerSize; }

  bool operator==(const SegmentTrailer&) const = default;
};

// An upper bound of data_end for a sealed segment with a lost footer, from the segment's known size
// and number of chunks. Bad blocks below this bound are damage.
uint64_t LastDataEnd(uint64_t sealed_length, uint64_t chunk_count);

// The only block that can contain this ordinal: the last block whose first ordinal is not higher.
std::optional<BlockPlace> FindBlockPlace(const std::vector<BlockPlace>& blocks, uint32_t ordinal);

// The block table of a sealed segment, to find blocks without the rest of the footer.
struct BlockTable {
  std::vector<BlockPlace> blocks;  // ascending by offset and ordinal
  uint32_t chunk_count = 0;        // of the segment
  uint32_t data_end = 0;
  uint64_t plain_bytes = 0;  // of the segment

  struct Found {
    BlockPlace place;
    uint32_t end_ordinal = 0;  // chunks from here on are not in this block
    uint32_t bytes = 0;        // upper bound, on disk
    uint32_t plain_bytes = 0;  // estimate: by the block's share of the segment's chunks
  };
  // Finds the block of an ordinal by a binary search; empty if there is no such ordinal. If the
  // chunk is lost, the returned block doesn't contain the ordinal. If the first chunks are lost,
  // there may be no block at the returned place.
  std::optional<Found> Find(uint32_t ordinal) const;
  size_t memory_bytes() const { return sizeof *this + blocks.capacity() * sizeof(BlockPlace); }
};

struct SegmentFooter {
  SegmentTrailer trailer;
  std::vector<FooterChunk> chunks;  // by ordinal; all zero for a lost chunk
  std::vector<BlockPlace> blocks;   // ascending by offset and ordinal
  // The bases of the segment's deltas. Ascending and each once after encoding or decoding.
  std::vector<BaseRef> bases = {};

  // Adds the next block of the segment: its chunks, and the totals in the trailer.
  void Add(const BlockPlace& place, const std::vector<ChunkRecord>& records, uint64_t sequence,
           uint64_t end_offset);
  // Adds the bases of a block's deltas.
  void AddBases(const std::vector<DeltaBase>& deltas);
  // Finds the block of an ordinal; empty if the segment has no such ordinal. If the chunk is lost,
  // the returned block doesn't contain it.
  std::optional<BlockPlace> FindBlock(uint32_t ordinal) const;
};

// Encodes the tables and the trailer. Sorts the bases and removes repeated ones. Sets
// trailer.chunk_count, block_count, base_count and tables_checksum from the tables.
std::string EncodeSegmentFooter(SegmentFooter& footer, const SegmentIdentity& identity);

// Whether these last kSegmentTrailerSize bytes of a file look like a trailer; damage is not
// checked.
bool LooksLikeTrailer(ByteView bytes);
// Decodes the trailer. Checks its consistency and compares it with the file's size, so that the
// tables' sizes can be trusted.
Result<SegmentTrailer> DecodeSegmentTrailer(ByteView bytes, const SegmentIdentity& identity,
                                            uint64_t file_size);

// Decode parts of the tables; bytes.size() is a multiple of the entry size.
std::vector<FooterChunk> DecodeFooterChunks(ByteView bytes);
std::vector<BlockPlace> DecodeFooterBlocks(ByteView bytes);

// Decodes the base table; `bytes` has trailer.base_table_bytes() bytes. Its own checksum, the order
// and the lengths are verified.
Result<std::vector<BaseRef>> DecodeBaseTable(const SegmentTrailer& trailer, ByteView bytes,
                                             const SegmentIdentity& identity);

// Decodes the footer. `tables` are the bytes between data_end and the trailer; their checksum and
// order are verified.
Result<SegmentFooter> DecodeSegmentFooter(const SegmentTrailer& trailer, ByteView tables,
                                          const SegmentIdentity& identity);

}  // namespace siltfs
