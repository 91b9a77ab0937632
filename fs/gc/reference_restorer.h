// Makes index entries for chunks that metadata or deltas refer to and segments hold, but that the
// index does not know. Stores written before secondary copies were noted (secondary_copies.h) may
// refer to such chunks. A read of such a chunk has to search all footers.
//
// Thread-safety: one thread at a time. Memory: some 100 bytes for each such chunk, and the footer
// of one segment. Errors: those of metadata, nodes, index, pipeline and notes. An unreadable
// segment is skipped. Durability: after Restore, the caller takes a sequence from
// BlockPipeline::EndSequence. The new entries are durable when the index is durable up to this
// sequence.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "fs/chunks/secondary_copies.h"
#include "fs/kv/kv_store.h"
#include "fs/mark/mark.h"
#include "fs/recipe/recipe_node.h"
#include "fs/segments/block_pipeline.h"
#include "fs/segments/segment_cache.h"
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
    std::function<bool(SegmentId)> gone;  // true: a location in the segment counts as missing
    std::function<bool(SegmentId, uint32_t ordinal)> is_damaged;
    MarkPace pace;
    MoreReferences more = {};  // as in MarkOptions
  };
  ReferenceRestorer(const Dependencies& dependencies, Options options);

  // `orders` stands for the references that have no index entry: their positions in the order of
  // the index (ChunkIndex::OrderOf), ascending. `segments`: the segments to search. Returns the
  // number of chunks for which it has made an entry.
  Result<uint64_t> Restore(const KvSnapshot& metadata, std::span<const uint64_t> orders,
                           std::span<const SegmentId> segments);

 private:
  // A chunk without an index entry, and the places where segments hold it.
  struct Lost {
    ChunkName name;
    std::vector<Location> places;
  };
  using LostByPrefix = std::multimap<uint64_t, Lost>;

  Result<LostByPrefix> FindLost(const KvSnapshot& metadata, std::span<const uint64_t> orders);
  void SearchSegment(SegmentId segment, LostByPrefix& lost);
  void SearchBlocks(SegmentId segment, const SegmentReader& reader, LostByPrefix& lost);
  // If the chunk at `place` is a lost one, adds the place to this lost chunk.
  void Take(const Location& place, const BlockHead& head, LostByPrefix& lost);
  // Notes the segments of all places, and makes the index lead to one place. False if there is no
  // place.
  Result<bool> Enter(const Lost& chunk);

  const Dependencies deps_;
  const Options options_;
};

}  // namespace siltfs
