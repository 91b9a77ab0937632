// The mark of garbage collection: finds the names that committed metadata refers to, and so the
// live chunks of the store (docs/crash-model.md, "Garbage collection").
//
// The base of a delta is live as long as a segment has the delta, even if nothing else refers to
// it.
//
// There are two marks. CountLive covers the whole store and counts the live chunks of each segment,
// to find segments worth collecting. CountLive turns each referenced name into its 64-bit place in
// the index's order, sorts these places in files, and merges them with the index's entries. Nothing
// may be deleted because of its counts, since an index entry is a hint, and entries may be missing.
// SegmentMark covers all chunks in the footers of a few segments. If it calls a chunk dead, no
// committed metadata refers to this chunk, and no delta that the caller has named needs it.
//
// Both marks walk the metadata of one commit. Chunks put after that commit, or being put now, are
// not in its metadata, and look dead. So a caller that deletes segments must have made them victims
// before that commit: then no new reference leads into them.
//
// If anything cannot be read or decoded, the mark fails with that Status: it never guesses that a
// chunk is dead.
//
// Thread-safety: each call, and each SegmentMark, belongs to one thread. Memory, besides the memory
// stated below: a table of recipe nodes with 19 bytes for each slot (11 in CountLive). 70 to 87 %
// of the slots are in use. A node has some 128 chunks. Errors: those of metadata, nodes, index and
// pace; kCorruption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/recipe/recipe_node.h"
#include "index/chunk_index.h"
#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/progress_meter.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

// A mark calls this function at intervals. The function may wait. If it fails, the mark ends and
// returns its error. May be empty.
using MarkPace = std::function<Status()>;

// Calls `visit` for every name that committed metadata refers to, perhaps more than once for a
// repeated name. These are the chunks and recipe nodes of all inodes' recipes and of overlays,
// including those of open inodes without a name. A node shared by several recipes is walked once.
Status ForEachReference(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
                        const std::function<Status(const ChunkName&)>& visit);

// Calls `visit` for each name that is live although metadata does not refer to it, perhaps more
// than once. These are the bases of deltas (fs/segments/segment_bases.h). May be empty.
using MoreReferences = std::function<Status(const std::function<Status(const ChunkName&)>& visit)>;

struct MarkOptions {
  // Directory for references that do not fit into memory; it must hold no other files. If it does
  // not exist, it is created and later removed.
  std::string spill_directory;
  size_t memory_bytes = 8u << 20;  // for sorting
  MarkPace pace;
  // Free space to leave on the disk. If spilling would leave less, the mark does not spill.
  uint64_t minimum_free_bytes = 64u << 20;
  // True for a removed segment: an index entry that leads into it counts as missing. May be empty.
  std::function<bool(SegmentId)> gone = {};
  // Called after each walk of metadata. May be empty.
  MoreReferences more = {};
  // Counts the files of each walk, and the entries of the index after it. Null, or must outlive the
  // mark.
  ProgressMeter* progress = nullptr;
  uint64_t expected_inodes = 0;  // for `progress`; 0: not known
};

struct LiveCounts {
  // A segment that is not in the map has no live chunk.
  std::unordered_map<SegmentId, uint32_t> live_chunks;
  uint64_t references = 0;
  uint64_t live = 0;
  uint64_t dead_entries = 0;   // index entries without a reference
  uint64_t spilled_bytes = 0;  // written
  uint64_t passes = 1;         // over metadata
  // The first kMostNotIndexed references without an index entry, as ascending places in the index's
  // order. If the disk had no room to spill references, the mark does not look for references
  // without an index entry, and the vector is empty.
  std::vector<uint64_t> not_indexed = {};
  static constexpr size_t kMostNotIndexed = 64u << 10;
};

// Counts the live chunks of each segment: merges the sorted references with the index's entries in
// the index's order. If the disk has no room to spill, metadata is walked several times. Each walk
// collects the references of the next part of the index's order, as many as fit into memory. The
// walks run within ChunkIndex::ForEach, which pins one part of the index's files at a time.
Result<LiveCounts> CountLive(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                             ChunkIndex& index, const MarkOptions& options);

// The chunks of a few segments, and which of these chunks are referred to. Memory: 12 to 16 bytes
// for each chunk.
class SegmentMark {
 public:
  // Adds all chunks of a segment, in order of ordinals. Call it once for each segment. A chunk with
  // an all-zero footer entry counts as live, because its name is lost.
  void Add(SegmentId segment, std::span<const FooterChunk> chunks);
  // Marks the chunks that metadata refers to. Only the first 64 bits of names are compared: a dead
  // chunk counts as live if a live chunk has the same first 64 bits. Until Mark has succeeded, and
  // after it has failed, all chunks count as live. Calls `visit` for every name that metadata
  // refers to, perhaps more than once for a repeated name; `visit` may be empty. Then calls `more`,
  // which may call SetBase and LiveCount; a failure of `more` is a failure of Mark.
  Status Mark(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
              const std::function<void(const ChunkName&)>& visit = {},
              const std::function<Status()>& more = {});
  // Marks the chunks with this name as live, and as bases of deltas. Call it only within `more`.
  void SetBase(const ChunkName& name);
  // Calls `visit` for each segment in which a chunk with this name is dead. Call it after Mark.
  void ForEachDead(const ChunkName& name, const std::function<void(SegmentId)>& visit) const;
  // Whether a chunk is live; true for a chunk that was never added.
  bool IsLive(SegmentId segment, uint32_t ordinal) const;
  // Whether a chunk is the base of a delta, as far as its first 64 bits tell: a copy of it must
  // stay whole. True for a chunk that was never added.
  bool IsBase(SegmentId segment, uint32_t ordinal) const;
  // The number of live chunks; UINT32_MAX for a segment that was never added.
  uint32_t LiveCount(SegmentId segment) const;

 private:
  struct Segment {
    SegmentId id = 0;
    uint32_t first = 0;  // index of its first chunk
    uint32_t count = 0;
  };

  const Segment* Find(SegmentId segment) const;
  size_t PlaceOf(uint64_t prefix) const;
  void BuildTable();
  // Calls `visit` with the index of each chunk that has this prefix.
  void ForEachWith(uint64_t prefix, const std::function<void(uint32_t chunk)>& visit) const;
  void SetLive(uint64_t prefix);
  bool Get(const std::vector<bool>& chunks, SegmentId segment, uint32_t ordinal) const;

  std::vector<Segment> segments_;
  std::vector<uint64_t> prefixes_;  // of all chunks' names
  std::vector<uint32_t> lost_;      // chunks with lost names
  std::vector<uint32_t> table_;     // hash table of chunks by prefix; made by Mark
  std::vector<bool> live_;          // by chunk
  std::vector<bool> base_;          // by chunk
  bool marked_ = false;
};

}  // namespace siltfs
