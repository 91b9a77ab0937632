// The record of a run of chunks that were lost together, usually a block: the value of the key
// (segment id, ordinal of the first chunk).
//
// For each chunk, a record holds the beginning of the chunk's name, and the chunk's tag. Only bytes
// that match both may replace the chunk. Records are hints and may be lost. If an undamaged chunk
// is recorded, the worst effect is that it is stored twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/result.h"

namespace siltfs {

struct DamagedChunk {
  uint64_t name_prefix = 0;  // ChunkName::Prefix64; prefix and tag are both 0 if they are unknown
  ChunkTag tag = 0;

  bool known() const { return name_prefix != 0 || tag != 0; }
  bool operator==(const DamagedChunk&) const = default;
};

struct DamagedBlock {
  static constexpr size_t kMostChunks = 4096;  // the most chunks in one record

  SegmentId segment = kNoSegment;
  uint32_t first_ordinal = 0;
  std::vector<DamagedChunk> chunks;  // at least one

  uint32_t end_ordinal() const { return first_ordinal + static_cast<uint32_t>(chunks.size()); }
  bool operator==(const DamagedBlock&) const = default;

  std::string EncodeChunks() const;
  // kCorruption if `value` is not a record.
  static Result<std::vector<DamagedChunk>> DecodeChunks(std::string_view value);
};

}  // namespace siltfs
