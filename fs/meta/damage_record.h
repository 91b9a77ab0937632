// What metadata knows of the chunks that are known to be damaged: value behind the key (segment id,
// ordinal), one for each stretch of chunks that were lost together, a block mostly.
//
// Of each chunk the beginning of its name and its tag: only bytes that have both may be stored in
// its place. What is recorded is a hint as far as whole chunks are concerned (one that is recorded
// and whole is stored twice, at worst), and so may be lost, too.
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
  uint64_t name_prefix = 0;  // ChunkName::Prefix64; this and the tag are 0 if nobody knows
  ChunkTag tag = 0;

  bool known() const { return name_prefix != 0 || tag != 0; }
  bool operator==(const DamagedChunk&) const = default;
};

struct DamagedBlock {
  static constexpr size_t kMostChunks = 4096;  // as a block has

  SegmentId segment = kNoSegment;
  uint32_t first_ordinal = 0;
  std::vector<DamagedChunk> chunks;  // at least one

  uint32_t end_ordinal() const { return first_ordinal + static_cast<uint32_t>(chunks.size()); }
  bool operator==(const DamagedBlock&) const = default;

  std::string EncodeChunks() const;
  // kCorruption for what is no record.
  static Result<std::vector<DamagedChunk>> DecodeChunks(std::string_view value);
};

}  // namespace siltfs
