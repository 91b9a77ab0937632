// The forms of a block: collected from chunks, encoded for the segment, and decoded again.
//
// clang-format off
//   form             made by                    bytes
//                                               +---------------------------+---------------------+
//   PlainBlock       BlockBuilder::Take         | chunk records             | uncompressed chunks |
//                                               +---------------------------+---------------------+
//   EncodedBlock     BlockCodec::Encode         | chunk records             | payload             |
//                                               +--------+------------------+---------------------+
//   in the segment   SegmentWriter::Append      | header | chunk table      | payload             |
//                                               |   56   | 32 a chunk       | payload_bytes       |
//                                               +--------+------------------+---------------------+
//   DecodedBlock     SegmentReader::ReadBlock   | BlockHead                 | uncompressed chunks |
//                                               +---------------------------+---------------------+
// clang-format on
//
// All forms are plain values; a DecodedBlock is shared and immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/base/buffer.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/segment/block_head.h"

namespace siltfs {

struct PlainBlock {
  std::vector<ChunkRecord> records;
  Bytes plain;  // the concatenated chunks
};

// Collects chunks. The caller decides how full a block should be; this class enforces the format's
// limits. Not thread-safe.
class BlockBuilder {
 public:
  // Whether a chunk of this length can be added.
  bool Fits(size_t length) const;
  // Adds a chunk and copies its bytes. kInvalidArgument if bytes.size() differs from record.length,
  // or if the chunk doesn't fit.
  Status Add(const ChunkRecord& record, ByteView bytes);

  size_t plain_bytes() const { return block_.plain.size(); }
  size_t chunk_count() const { return block_.records.size(); }
  bool empty() const { return block_.records.empty(); }
  void Reserve(size_t bytes) { block_.plain.reserve(bytes); }

  void Clear();
  // Returns the collected chunks; the builder is empty afterwards.
  PlainBlock Take();

 private:
  PlainBlock block_;
};

// A block that is not bound to a place; SegmentWriter adds the fields that depend on the place.
struct EncodedBlock {
  BlockCodecId codec = BlockCodecId::kNone;
  std::vector<ChunkRecord> records;
  uint32_t plain_bytes = 0;
  uint64_t payload_checksum = 0;
  Bytes payload;  // as stored

  uint32_t chunk_count() const { return static_cast<uint32_t>(records.size()); }
  // The size of the block on disk, including its head.
  uint64_t total_bytes() const {
    return kBlockHeaderSize + uint64_t{kChunkTableEntrySize} * records.size() + payload.size();
  }
};

// A block that was read and verified. Immutable; shared between caches and readers.
class DecodedBlock {
 public:
  // The record lengths in `head` must add up to plain.size().
  DecodedBlock(BlockHead head, Buffer plain);

  const BlockHead& head() const { return head_; }
  const std::vector<ChunkRecord>& records() const { return head_.records; }
  size_t chunk_count() const { return head_.records.size(); }
  ByteView plain() const { return plain_; }
  // The i-th chunk's bytes, i < chunk_count(); valid as long as the block.
  ByteView chunk(size_t i) const {
    return ByteView(plain_).subspan(offsets_[i], head_.records[i].length);
  }
  // Offset of the i-th chunk in plain().
  uint32_t chunk_offset(size_t i) const { return offsets_[i]; }
  size_t memory_bytes() const;

 private:
  BlockHead head_;
  std::vector<uint32_t> offsets_;
  Buffer plain_;
};

using DecodedBlockPtr = std::shared_ptr<const DecodedBlock>;

}  // namespace siltfs
