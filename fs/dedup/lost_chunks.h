// The chunks in damaged blocks of segments that are to be collected, by the names that metadata
// refers to: a block's own names may be lost with its head, and the list of damage has only their
// prefixes.
//
// Not thread-safe. Memory: some 100 bytes a chunk that is damaged in these segments.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "fs/dedup/chunk_reader.h"
#include "fs/dedup/damage_list.h"
#include "index/chunk_index.h"

namespace siltfs {

class LostChunks {
 public:
  LostChunks(const DamageList& damage, std::span<const SegmentId> segments);

  // A name that metadata refers to.
  void Visit(const ChunkName& name);

  // True if every live chunk of [first, end) is known to be damaged, and lies whole where the index
  // leads. Places for which `is_bad` is true, damaged or soon removed, do not count.
  bool LieElsewhere(SegmentId segment, uint32_t first, uint32_t end,
                    const std::function<bool(uint32_t ordinal)>& is_live, ChunkIndex& index,
                    ChunkReader& reader, const std::function<bool(const Location&)>& is_bad) const;

 private:
  bool LiesElsewhere(const DamagedChunk& chunk, ChunkIndex& index, ChunkReader& reader,
                     const std::function<bool(const Location&)>& is_bad) const;

  const DamageList& damage_;
  std::unordered_map<uint64_t, std::vector<ChunkName>> names_;  // by prefix
};

}  // namespace siltfs
