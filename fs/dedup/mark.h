// The mark of garbage collection: what committed metadata refers to, and what of the store is
// therefore live (DESIGN, section 3, "GC").
//
// There are two. CountLive looks at the whole store and says how much of each segment is live, so
// that the segments worth collecting are found: references, as fingerprints in the index's order,
// are sorted outside of memory and merged with the index's entries. Its counts are no reason to
// delete anything: an index entry is a hint, and so is its absence. SegmentMark looks at a few
// segments, chunk by chunk as their footers have them, and what it calls dead nobody refers to.
//
// Both walk the metadata of one commit. What was put since that commit, or is being put, is not in
// it and looks dead; whoever deletes must have seen to it that nothing new leads into the segments
// in question since before that commit (they are condemned first).
//
// Whatever cannot be read or decoded ends a mark with its Status: nothing is called dead on
// guesses.
//
// Thread-safety: each call, and each SegmentMark, belongs to one thread. Memory: 19 bytes for a
// recipe node by an occupancy of 70 to 87 % (11 in CountLive), at some 128 chunks a node, besides
// what is said below. Errors: those of metadata, nodes, index and pace; kCorruption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fs/meta/kv_store.h"
#include "fs/meta/recipe_node.h"
#include "index/chunk_index.h"
#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

// Called now and then; a failure ends the mark and is returned. May wait. May be empty.
using MarkPace = std::function<Status()>;

// Every name that committed metadata refers to, repeated ones perhaps more than once: chunks and
// recipe nodes of all inodes' recipes (inodes without a name that are still open, included) and of
// overlays. Nodes that several recipes share are walked once.
Status ForEachReference(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
                        const std::function<Status(const ChunkName&)>& visit);

struct MarkOptions {
  // Where references are spilled to, if they don't fit into memory: nobody else's files are in
  // there. It is made, and removed again, if it is not there.
  std::string spill_directory;
  size_t memory_bytes = 8u << 20;  // for sorting
  MarkPace pace;
  // Of the disk; rather than leave it less, the mark does without spilling.
  uint64_t minimum_free_bytes = 64u << 20;
  // An entry that leads into such a segment is as good as none. May be empty.
  std::function<bool(SegmentId)> gone = {};
};

struct LiveCounts {
  // A segment that is not in it has no chunk that is referred to.
  std::unordered_map<SegmentId, uint32_t> live_chunks;
  uint64_t references = 0;
  uint64_t live = 0;
  uint64_t dead_entries = 0;   // index entries nobody refers to
  uint64_t spilled_bytes = 0;  // written
  uint64_t passes = 1;         // over metadata
  // References without an index entry, by their places in the index's order, ascending: the first
  // kMostNotIndexed of them. Where references were not spilled it is not known which they are.
  std::vector<uint64_t> not_indexed = {};
  static constexpr size_t kMostNotIndexed = 64u << 10;
};

// How many chunks of each segment are referred to: the sorted references are merged with the
// index's entries in the index's order. Where the disk has no room to spill, metadata is walked
// again and again, each time for as many references of the index's order as fit into memory; one
// partition of the index is pinned meanwhile.
Result<LiveCounts> CountLive(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                             ChunkIndex& index, const MarkOptions& options);

// The chunks of a few segments, and which of them are referred to. 12 to 16 bytes a chunk while
// marking.
class SegmentMark {
 public:
  // In order of ordinals; all of the segment, which is added once. A chunk whose name was lost (all
  // zero) counts as live.
  void Add(SegmentId segment, std::span<const FooterChunk> chunks);
  // Sets what is referred to (by the name's first 64 bits: a name that begins alike keeps a dead
  // chunk). Until it has succeeded, and after it has failed, everything counts as live.
  // `visit` is told of every name, repeated ones perhaps more than once; may be empty.
  Status Mark(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
              const std::function<void(const ChunkName&)>& visit = {});
  // True of what was never added.
  bool IsLive(SegmentId segment, uint32_t ordinal) const;
  // UINT32_MAX of a segment that was never added.
  uint32_t LiveCount(SegmentId segment) const;

 private:
  struct Segment {
    SegmentId id = 0;
    uint32_t first = 0;  // of its chunks
    uint32_t count = 0;
  };

  const Segment* Find(SegmentId segment) const;
  size_t PlaceOf(uint64_t prefix) const;
  void BuildTable();
  void SetLive(uint64_t prefix);

  std::vector<Segment> segments_;
  std::vector<uint64_t> prefixes_;  // of all chunks' names
  std::vector<uint32_t> lost_;      // chunks whose names are
  std::vector<uint32_t> table_;     // chunks by prefix, open addressing; while marking
  std::vector<bool> live_;          // by chunk
  bool marked_ = false;
};

}  // namespace siltfs
