// Writes a segment's file anew from its whole blocks where its header or footer has rotted, or,
// where damage is to go, without what is damaged.
//
// A new file beside the old one, synced, that the caller renames over it (InstallRewrite), so that
// metadata can be told in between what the segment will be. Ordinals stay as they are, for index
// entries name them.
//
// What is damaged stays as it is, in its place, unless `filler` is given: then each chunk that
// cannot be read any more is replaced by the filler, in a block of its own, and the segment is
// whole again. Blocks behind that move, and entries that lead to them find them by their ordinals.
//
// Thread-safety: any thread; nothing may append to the segment. Memory: a block, and the footer.
// Errors: kCorruption if no block is whole, or if chunks at the end are lost and there is no
// filler: where the blocks ended nobody knows then; Env's. Of a failure no new file is left, as far
// as it could be removed. Durability: the new file's content on return, its name not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

struct SegmentRepairOptions {
  // What the segment holds, where its header does not say.
  SegmentKind kind = SegmentKind::kData;
  // How many chunks it should have, and how long its file should be with its footer; 0 where
  // nobody knows, as of one that was not sealed.
  uint32_t chunks = 0;
  uint64_t sealed_length = 0;
  // Of one that was not sealed: every byte below was durable.
  uint64_t committed_length = 0;
  // Stands for a chunk that is lost: a chunk of one byte, zero.
  std::optional<ChunkRecord> filler = {};
};

struct PreparedSegmentRepair {
  SegmentTrailer trailer;    // of the new file
  uint32_t lost_chunks = 0;  // that are damaged, or were replaced
};

Result<PreparedSegmentRepair> PrepareSegmentRepair(Env& env, const std::string& store,
                                                   const SegmentIdentity& identity,
                                                   const SegmentRepairOptions& options);

}  // namespace siltfs
