// A block on its way in and out: collected from chunks, encoded for the segment, decoded again.
//
//   BlockBuilder --Take--> PlainBlock --BlockCodec::Encode--> EncodedBlock
//   --SegmentWriter::Append--> the segment the segment --SegmentReader::ReadBlock--> DecodedBlock
//
// All are plain values, owned by whoever holds them; DecodedBlock is shared, and never changes.
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
  Bytes plain;  // the chunks, one after another
};

// Collects chunks. How full a block should be is the caller's choice; the format's limits are kept
// here. Not thread-safe.
class BlockBuilder {
 public:
  // Whether a chunk of this many bytes may still be added.
  bool Fits(size_t length) const;
  // Copies the bytes; bytes.size() == record.length. kInvalidArgument if not so, or if it doesn't
  // fit.
  Status Add(const ChunkRecord& record, ByteView bytes);

  size_t plain_bytes() const { return block_.plain.size(); }
  size_t chunk_count() const { return block_.records.size(); }
  bool empty() const { return block_.records.empty(); }
  void Reserve(size_t bytes) { block_.plain.reserve(bytes); }

  void Clear();
  // What was collected; the builder is empty afterwards.
  PlainBlock Take();

 private:
  PlainBlock block_;
};

// Ready to be appended anywhere: what depends on the place is added by the segment's writer.
struct EncodedBlock {
  BlockCodecId codec = BlockCodecId::kNone;
  std::vector<ChunkRecord> records;
  uint32_t plain_bytes = 0;
  uint64_t payload_checksum = 0;
  Bytes payload;  // as stored

  uint32_t chunk_count() const { return static_cast<uint32_t>(records.size()); }
  // On disk, head included.
  uint64_t total_bytes() const {
    return kBlockHeaderSize + uint64_t{kChunkTableEntrySize} * records.size() + payload.size();
  }
};

// A block as read back and verified. Immutable; shared between caches and readers.
class DecodedBlock {
 public:
  // The head's lengths sum up to plain.size().
  DecodedBlock(BlockHead head, Buffer plain);

  const BlockHead& head() const { return head_; }
  const std::vector<ChunkRecord>& records() const { return head_.records; }
  size_t chunk_count() const { return head_.records.size(); }
  ByteView plain() const { return plain_; }
  // The i-th chunk's bytes, i < chunk_count(); they live as long as the block.
  ByteView chunk(size_t i) const {
    return ByteView(plain_).subspan(offsets_[i], head_.records[i].length);
  }
  // Where the i-th chunk begins in plain().
  uint32_t chunk_offset(size_t i) const { return offsets_[i]; }
  size_t memory_bytes() const;

 private:
  BlockHead head_;
  std::vector<uint32_t> offsets_;
  Buffer plain_;
};

using DecodedBlockPtr = std::shared_ptr<const DecodedBlock>;

}  // namespace siltfs
