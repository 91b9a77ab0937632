// Collects the names of damaged chunks in segments that are to be collected, and finds copies of
// these chunks elsewhere. The names come from the references in metadata: a block's own names may
// be lost with its head, and the damage list has only their prefixes.
//
// Not thread-safe. Memory: some 100 bytes for each damaged chunk in these segments.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "fs/chunks/chunk_reader.h"
#include "fs/segments/damage_list.h"
#include "index/chunk_index.h"

namespace siltfs {

class LostChunks {
 public:
  LostChunks(const DamageList& damage, std::span<const SegmentId> segments);

  // Called for each name that metadata refers to, and for each base of a delta.
  void Visit(const ChunkName& name);

  // True if every live chunk of the ordinals [first, end) is on the damage list, and the index
  // leads to an undamaged copy of each. `is_bad` is true for a place that is damaged or in a
  // segment that will soon be removed; a copy there does not count. For a base of a delta
  // (`is_base`), only a copy that will stay whole counts.
  struct Chunks {
    SegmentId segment = kNoSegment;
    uint32_t first = 0;
    uint32_t end = 0;
    std::function<bool(uint32_t ordinal)> is_live;
    std::function<bool(uint32_t ordinal)> is_base;
  };
  bool LieElsewhere(const Chunks& chunks, ChunkIndex& index, ChunkReader& reader,
                    const std::function<bool(const Location&)>& is_bad) const;

 private:
  bool LiesElsewhere(const DamagedChunk& chunk, bool is_base, ChunkIndex& index,
                     ChunkReader& reader, const std::function<bool(const Location&)>& is_bad) const;

  const DamageList& damage_;
  std::unordered_map<uint64_t, std::vector<ChunkName>> names_;  // by prefix
};

}  // namespace siltfs
