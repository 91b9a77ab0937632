// Rewrites a segment's file from its whole blocks, either because its header or footer is damaged,
// or to remove damaged blocks.
//
// Makes the new content in the local file that BuiltReplacement names (segment_source.h), and syncs
// this file. The caller passes the file to SegmentStore::Replace, and can record the new state in
// the metadata before that call. Ordinals stay the same, because index entries contain them.
//
// Without `filler`, damaged bytes stay unchanged in their place. With `filler`, the filler chunk
// replaces each unreadable chunk, in blocks that hold only filler, and the segment is whole again.
// Later blocks move; index entries still find their chunks by ordinal.
//
// Thread-safety: any thread; nothing may append to the segment. Memory: one block, and the footer.
// Errors: kCorruption if no block is whole. Also kCorruption if chunks at the end are lost and
// there is no filler, because the end of the blocks is then unknown. kFileTooLarge if the segment
// has no room for the filler, or for chunks that become whole. Other errors are Env's. After a
// failure the new file is removed, if possible. Durability: on return the new file's content is
// durable, its name is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/base_source.h"
#include "store/segment/block_head.h"
#include "store/segment/segment_footer.h"
#include "store/segment/segment_store.h"

namespace siltfs {

struct SegmentRepairOptions {
  // The kind of the segment, used if its header is damaged.
  SegmentKind kind = SegmentKind::kData;
  // The expected number of chunks, and the expected file size with the footer; 0 if unknown, as for
  // an unsealed segment.
  uint32_t chunks = 0;
  uint64_t sealed_length = 0;
  // For an unsealed segment: every byte below this offset was durable.
  uint64_t committed_length = 0;
  // Replaces a lost chunk: the record of a chunk of one zero byte.
  std::optional<ChunkRecord> filler = {};
  // With filler: deltas that lack their base are lost chunks, too. Null: they stay deltas.
  BaseSource* bases = nullptr;
};

struct PreparedSegmentRepair {
  SegmentTrailer trailer;    // of the new file
  uint32_t lost_chunks = 0;  // chunks that stay damaged, or that filler replaces
};

Result<PreparedSegmentRepair> PrepareSegmentRepair(Env& env, const std::string& store,
                                                   SegmentStore& segments,
                                                   const SegmentIdentity& identity,
                                                   const SegmentRepairOptions& options);

}  // namespace siltfs
