// The head of a block: its header and its chunk table. docs/format.md ("Block header") lists all
// bytes. Pure functions of bytes; any thread. Errors: see segment_format.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"
#include "store/segment/segment_format.h"

namespace siltfs {

inline constexpr uint32_t kBlockHeaderSize = 56;
inline constexpr uint32_t kChunkTableEntrySize = 32;
inline constexpr uint32_t kMaxBlockHeadSize =
    kBlockHeaderSize + kMaxBlockChunks * kChunkTableEntrySize;

enum class BlockCodecId : uint8_t {
  kNone = 0,  // the payload is the uncompressed bytes
  kZstd = 1,
  kZstdDelta = 2,  // some chunks are deltas against bases (delta_payload.h)
};

// One entry of a chunk table: all that a segment records about a chunk.
struct ChunkRecord {
  ChunkName name;
  ChunkTag tag = 0;
  uint32_t length = 0;  // uncompressed bytes, 1 to kMaxChunkLength
  // 0: the name is the SHA-1 of the uncompressed bytes; n: the name is the salted one with number
  // n.
  uint8_t salt = 0;

  bool operator==(const ChunkRecord&) const = default;
};

struct BlockHead {
  BlockCodecId codec = BlockCodecId::kNone;
  uint32_t first_ordinal = 0;
  uint32_t payload_bytes = 0;  // as stored
  uint32_t plain_bytes = 0;    // the sum of the records' lengths
  SegmentId segment = kNoSegment;
  uint64_t sequence = 0;     // store-wide; increases from block to block within a segment
  uint64_t last_commit = 0;  // the last commit completed when the block was appended
  uint64_t payload_checksum = 0;
  std::vector<ChunkRecord> records;  // 1 to kMaxBlockChunks

  uint32_t head_bytes() const {
    return kBlockHeaderSize + static_cast<uint32_t>(records.size()) * kChunkTableEntrySize;
  }
  uint32_t total_bytes() const { return head_bytes() + payload_bytes; }
  uint32_t end_ordinal() const { return first_ordinal + static_cast<uint32_t>(records.size()); }
  bool Covers(uint32_t ordinal) const {
    return ordinal >= first_ordinal && ordinal < end_ordinal();
  }

  bool operator==(const BlockHead&) const = default;
};

// Encodes the head to head.head_bytes() bytes. `head.segment` must be `identity.id`.
std::string EncodeBlockHead(const BlockHead& head, const SegmentIdentity& identity);

// A fast check of whether a block could begin with these bytes.
bool BeginsLikeBlock(ByteView bytes);

// The size of the head that begins with `header`, which has at least kBlockHeaderSize bytes. Does
// not verify the checksum. kCorruption if no block begins with these bytes.
Result<uint32_t> BlockHeadSize(ByteView header);

// Decodes a whole head; `bytes` has the size that BlockHeadSize returns. Verifies everything except
// the payload.
Result<BlockHead> DecodeBlockHead(ByteView bytes, const SegmentIdentity& identity);

// kCorruption if the payload does not match the head.
Status CheckPayload(const BlockHead& head, ByteView payload);

}  // namespace siltfs
