// Makes the index lead to chunks that committed metadata refers to and the index does not know,
// though a segment holds them. Stores written before secondary copies were noted
// (secondary_copies.h) may have such references; a read finds their chunks by searching all
// footers.
//
// Thread-safety: one thread at a time. Memory: some 100 bytes for each name, and the footer of one
// segment. Errors: those of metadata, nodes, index, pipeline and notes. An unreadable segment is
// skipped. Durability: entries are durable when the index says so.
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
  // Dependencies. All must outlive it.
  struct Dependencies {
    ChunkIndex& index;
    SegmentCache& segments;
    BlockPipeline& pipeline;
    NodeStore& nodes;
    SecondaryCopies& secondary;
  };
  struct Options {
    std::function<bool(SegmentId)> gone;  // a place in such a segment counts as missing
    std::function<bool(SegmentId, uint32_t ordinal)> is_damaged;
    MarkPace pace;
  };
  ReferenceRestorer(const Dependencies& store, Options options);

  // `orders`: where the index should have the references (ChunkIndex::OrderOf), ascending.
  // `segments`: the segments to search. Returns for how many chunks the index has an entry now.
  Result<uint64_t> Restore(const KvSnapshot& metadata, std::span<const uint64_t> orders,
                           std::span<const SegmentId> segments);

 private:
  // A chunk without an index entry, and its places; by name prefix.
  struct Lost {
    ChunkName name;
    std::vector<Location> places;
  };
  using LostByPrefix = std::multimap<uint64_t, Lost>;

  Result<LostByPrefix> FindLost(const KvSnapshot& metadata, std::span<const uint64_t> orders);
  void SearchSegment(SegmentId segment, LostByPrefix& lost);
  void SearchBlocks(SegmentId segment, const SegmentReader& reader, LostByPrefix& lost);
  // Adds the place to the lost chunk that it holds, if any.
  void Take(const Location& place, const BlockHead& head, LostByPrefix& lost);
  // Makes the index lead to one of the places; the segments of all are noted.
  Result<bool> Enter(const Lost& chunk);

  const Dependencies deps_;
  const Options options_;
};

}  // namespace siltfs
