// Makes the index lead to chunks that committed metadata refers to and that the index does not
// know, though a segment holds them. Stores that were written before notes of secondary copies were
// kept (secondary_copies.h) may have such references; a read finds their chunks by searching all
// footers.
//
// Thread-safety: one thread at a time. Memory: some 100 bytes for each name, and the footer of one
// segment. Errors: those of metadata, nodes, index, pipeline and notes. A segment that cannot be
// read is passed over. Durability: entries are durable when the index says so.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "fs/dedup/block_pipeline.h"
#include "fs/dedup/mark.h"
#include "fs/dedup/secondary_copies.h"
#include "fs/dedup/segment_cache.h"
#include "fs/meta/kv_store.h"
#include "fs/meta/recipe_node.h"
#include "index/chunk_index.h"
#include "store/segment/block.h"
#include "store/segment/segment_reader.h"

namespace siltfs {

class ReferenceRestorer {
 public:
  // All must outlive it.
  struct Store {
    ChunkIndex& index;
    SegmentCache& segments;
    BlockPipeline& pipeline;
    NodeStore& nodes;
    SecondaryCopies& secondary;
  };
  struct Options {
    std::function<bool(SegmentId)> gone;  // a place in such a segment is as good as none
    std::function<bool(SegmentId, uint32_t ordinal)> is_damaged;
    MarkPace pace;
  };
  ReferenceRestorer(const Store& store, Options options);

  // `orders`: where the index should have the references (ChunkIndex::OrderOf), ascending.
  // `segments`: those to search. Returns for how many chunks the index has an entry now.
  Result<uint64_t> Restore(const KvSnapshot& metadata, std::span<const uint64_t> orders,
                           std::span<const SegmentId> segments);

 private:
  // By the beginnings of their names.
  struct Lost {
    ChunkName name;
    std::vector<Location> places;
  };
  using LostByPrefix = std::multimap<uint64_t, Lost>;

  Result<LostByPrefix> FindLost(const KvSnapshot& metadata, std::span<const uint64_t> orders);
  void SearchSegment(SegmentId segment, LostByPrefix& lost);
  void SearchBlocks(SegmentId segment, const SegmentReader& reader, LostByPrefix& lost);
  // The chunk at the place, if it is one of those that are lost.
  void Take(const Location& place, const BlockHead& head, LostByPrefix& lost);
  // Has the index lead to one of the places; the segments of all are noted.
  Result<bool> Enter(const Lost& chunk);

  const Store store_;
  const Options options_;
};

}  // namespace siltfs
