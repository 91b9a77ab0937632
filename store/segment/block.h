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
// The payload of a block with deltas has a form of its own (delta_payload.h). Inflating the deltas
// needs their bases. If a base cannot be had, the chunks that depend on it are missing in the
// DecodedBlock, and all other chunks are there. If the block is decoded without a source of bases,
// the DecodedBlock keeps the deltas as they are stored, and BlockCodec::Inflate inflates one of
// them.
//
// All forms are plain values; a DecodedBlock is shared and immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "store/base/buffer.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/segment/base_ref.h"
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
  // The chunks of a block with deltas, in one buffer.
  struct Chunks {
    static constexpr uint32_t kMissing = UINT32_MAX;

    Buffer bytes;
    std::vector<uint32_t> offsets;  // of each chunk in `bytes`; kMissing for a missing chunk
    std::vector<DeltaBase> bases;   // ascending by position
    // By entry of `bases`; OK unless the chunk is missing. Empty if no base was to be read.
    std::vector<Status> failures;
    Bytes frames;                      // the deltas as stored, if no base was to be read
    std::vector<uint32_t> frame_ends;  // in `frames`, by entry of `bases`
  };

  // A block without deltas. The record lengths in `head` must add up to plain.size().
  DecodedBlock(BlockHead head, Buffer plain);
  // A block with deltas. Only chunks with an entry in `bases` may be missing.
  DecodedBlock(BlockHead head, Chunks chunks);

  const BlockHead& head() const { return head_; }
  const std::vector<ChunkRecord>& records() const { return head_.records; }
  size_t chunk_count() const { return head_.records.size(); }
  // The i-th chunk's bytes, i < chunk_count(); valid as long as the block. Empty if the chunk is
  // missing: no chunk has no bytes.
  ByteView chunk(size_t i) const;
  // Null if the i-th chunk is there. Otherwise the reason: the failure of BaseSource::ReadBase with
  // its code, or kCorruption if the delta doesn't decompress; the message names the chunk and its
  // base. kNotFound if the block was decoded without a source of bases.
  const Status* missing(size_t i) const;
  bool any_missing() const { return any_missing_; }
  // The chunks that are stored as deltas, ascending by position; also those that are missing.
  const std::vector<DeltaBase>& bases() const { return chunks_.bases; }
  // The i-th chunk's delta, if the block was decoded without a source of bases.
  struct Delta {
    const BaseRef* base;
    ByteView frame;  // as stored
  };
  std::optional<Delta> delta(size_t i) const;
  size_t memory_bytes() const;

 private:
  // The entry of the i-th chunk in chunks_.bases; the number of entries if it is no delta.
  size_t EntryOf(size_t i) const;

  BlockHead head_;
  Chunks chunks_;
  bool any_missing_ = false;
};

using DecodedBlockPtr = std::shared_ptr<const DecodedBlock>;

}  // namespace siltfs
