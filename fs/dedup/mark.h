// The mark of garbage collection: finds the names that committed metadata refers to, and so the
// live chunks of the store (docs/crash-model.md, "Garbage collection").
//
// There are two. CountLive covers the whole store and counts the live chunks of each segment, so
// that segments worth collecting are found. References, as fingerprints in the index's order, are
// sorted outside of memory and merged with the index's entries. Its counts are no reason to delete
// anything: an index entry is a hint, and so is its absence. SegmentMark covers a few segments,
// chunk by chunk as their footers list them; nothing refers to a chunk that it calls dead.
//
// Both walk the metadata of one commit. Chunks put since that commit, or being put, are not in it
// and look dead. A caller that deletes must have ensured since before that commit that no new
// reference leads into these segments (they are made victims first).
//
// Anything that cannot be read or decoded ends a mark with its Status: nothing is called dead on
// guesses.
//
// Thread-safety: each call, and each SegmentMark, belongs to one thread. Memory: 19 bytes for a
// recipe node at an occupancy of 70 to 87 % (11 in CountLive), at some 128 chunks a node, besides
// the memory stated below. Errors: those of metadata, nodes, index and pace; kCorruption.
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

// Called at intervals; a failure ends the mark and is returned. May wait. May be empty.
using MarkPace = std::function<Status()>;

// Visits every name that committed metadata refers to, repeated ones perhaps more than once: chunks
// and recipe nodes of all inodes' recipes (including open inodes without a name) and of overlays. A
// node shared by several recipes is walked once.
Status ForEachReference(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
                        const std::function<Status(const ChunkName&)>& visit);

struct MarkOptions {
  // Directory for references that do not fit into memory; it must hold no other files. It is
  // created if it does not exist, and removed again then.
  std::string spill_directory;
  size_t memory_bytes = 8u << 20;  // for sorting
  MarkPace pace;
  // Free space to leave on the disk; the mark does without spilling rather than leave less.
  uint64_t minimum_free_bytes = 64u << 20;
  // An entry that leads into such a segment counts as missing. May be empty.
  std::function<bool(SegmentId)> gone = {};
};

struct LiveCounts {
  // A segment that is not in it has no live chunk.
  std::unordered_map<SegmentId, uint32_t> live_chunks;
  uint64_t references = 0;
  uint64_t live = 0;
  uint64_t dead_entries = 0;   // index entries without a reference
  uint64_t spilled_bytes = 0;  // written
  uint64_t passes = 1;         // over metadata
  // References without an index entry, by their places in the index's order, ascending: the first
  // kMostNotIndexed of them. Empty if the disk had no room to spill references: they are unknown
  // then.
  std::vector<uint64_t> not_indexed = {};
  static constexpr size_t kMostNotIndexed = 64u << 10;
};

// Counts the live chunks of each segment: merges the sorted references with the index's entries in
// the index's order. If the disk has no room to spill, metadata is walked several times, each time
// for as many references of the index's order as fit into memory; one partition of the index is
// pinned meanwhile.
Result<LiveCounts> CountLive(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                             ChunkIndex& index, const MarkOptions& options);

// The chunks of a few segments, and which of them are referred to. 12 to 16 bytes a chunk while
// marking.
class SegmentMark {
 public:
  // Adds all chunks of a segment, in order of ordinals; each segment once. A chunk with a lost name
  // (all zero) counts as live.
  void Add(SegmentId segment, std::span<const FooterChunk> chunks);
  // Marks the chunks that metadata refers to, by the first 64 bits of the name: an equal prefix
  // keeps a dead chunk. Until it has succeeded, and after it has failed, all chunks count as live.
  // Calls `visit` for every name, repeated ones perhaps more than once; may be empty.
  Status Mark(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
              const std::function<void(const ChunkName&)>& visit = {});
  // True for a chunk that was never added.
  bool IsLive(SegmentId segment, uint32_t ordinal) const;
  // UINT32_MAX for a segment that was never added.
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
  void SetLive(uint64_t prefix);

  std::vector<Segment> segments_;
  std::vector<uint64_t> prefixes_;  // of all chunks' names
  std::vector<uint32_t> lost_;      // chunks with lost names
  std::vector<uint32_t> table_;     // chunks by prefix, open addressing; while marking
  std::vector<bool> live_;          // by chunk
  bool marked_ = false;
};

}  // namespace siltfs
