// A survey of all chunks, for `siltfs report`: how long they are, how often the present files share
// them, and how many of the chunks in each segment are in use.
//
// The references are sorted by their places in the index's order, and merged with the index's
// entries. The entry of a chunk leads to its segment. Recipe nodes pass the number of their
// references on to their chunks, and each node is read once (level_walk.h).
//
// In a large store the survey takes a sample: the chunks in the first part of the index's order, a
// power of two of it. The place in this order is a hash of the name (in the engine "map", its first
// 64 bits), so the sample does not depend on sizes, ages or files. The sample has about
// `most_references` references or fewer, so what is sorted is bounded, and only the sampled part of
// the index is read. Numbers of chunks, bytes and references in the result are those of the sample;
// ChunkSurvey::Scale is what to multiply them by. All nodes are read in any case.
//
// The counts are no basis for deleting anything: an index entry is only a hint.
//
// Thread-safety: one thread. Memory: about 1.5 times `memory_bytes`, and 48 bytes for each segment.
// Cost: one walk over records and versions of inodes and overlays, one read of each distinct node,
// 24 bytes to sort for each sampled reference and 128 for each reference to a node, and one pass
// over the sampled part of the index. Errors: those of metadata, nodes, index, sorting
// (reference_sorter.h) and `on_progress`; kCorruption for what cannot be decoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/interface/store_survey.h"
#include "fs/kv/kv_store.h"
#include "fs/mark/mark.h"
#include "fs/recipe/recipe_node.h"
#include "fs/records/segment_record.h"
#include "index/chunk_index.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct ChunkSurveyOptions {
  // Directory for references that do not fit into memory. The files there have no names. If the
  // directory does not exist, it is created when it is needed; the caller removes it.
  std::string spill_directory;
  size_t memory_bytes = 16u << 20;
  // Free space to leave on the disk; kNoSpace if less would remain.
  uint64_t minimum_free_bytes = 64u << 20;
  uint64_t most_references = uint64_t{16} << 20;
  // About how many references there are: the counter of the store. The sample follows from it.
  uint64_t expected_references = 0;
  uint64_t expected_inodes = 0;  // for the progress
  // True for a removed segment: an index entry that leads into it counts as missing. May be empty.
  std::function<bool(SegmentId)> gone = {};
  // Chunks that are in use although no metadata refers to them. May be empty.
  MoreReferences more = {};
  // Called at intervals; a failure ends the survey. May be empty.
  SurveyProgressFunction on_progress = {};
};

// `segments`: the records of the same commit as `metadata`, ascending.
Result<ChunkSurvey> SurveyChunks(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                 ChunkIndex& index, const SegmentRecords& segments,
                                 const ChunkSurveyOptions& options);

}  // namespace siltfs
