// Rebuilds the chunk index of a store from its segments, for `siltfs index rebuild` and for
// repairs. Uses the same replay of blocks as a mount without an index. Then makes the segment guide
// again from the footers.
//
// The old index is removed first, so the disk needs no room for two indexes. An interrupted rebuild
// leaves an index that is complete up to some block and records the sequence of this block; the
// next mount continues there. Until the rebuild is finished, a mark beside the index
// (IndexRebuildPath) says that entries may be missing. Commands that only read the index look for
// this mark. Only newly found damage is written to metadata, and the superblock is not written. So
// the store still counts as unmounted.
//
// Thread-safety: any thread. Memory: that of the index and that of ReplayBlocks. Errors: kNotFound
// if there is no store, kInUse if it is mounted, kNeedsNewer for a store of a later version;
// kCorruption if metadata does not list the segments or is older than they are; kInterrupted;
// errors of Env. Damaged parts of segments are reported and left out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_store.h"

namespace siltfs {

struct IndexRebuildOptions {
  std::string store;                 // path
  SegmentStore* segments = nullptr;  // as FileSystemOptions::segments
  // Called with a sentence about damage in segments; may be empty.
  std::function<void(const std::string&)> report;
  // Called with the number of segments that are done; may be empty.
  std::function<void(uint64_t done, uint64_t total)> on_progress;
  // Polled; true ends the rebuild with kInterrupted. May be empty.
  std::function<bool()> interrupted;
};

struct RebuiltIndex {
  std::string engine;
  uint64_t segments = 0;
  uint64_t chunks = 0;      // that were read from the segments, recipe nodes included
  uint64_t entries = 0;     // of the index (IndexStats::entries)
  uint64_t damages = 0;     // reported
  int64_t nanoseconds = 0;  // duration
};

// Locks the store and rebuilds its index. If the store was not unmounted, first recovers it: opens
// it as a mount does, and closes it.
Result<RebuiltIndex> RebuildIndex(Env& env, const IndexRebuildOptions& options);

// Rebuilds the index; the caller holds the store's lock. kInvalidArgument if the store was not
// unmounted.
Result<RebuiltIndex> RebuildLockedIndex(Env& env, const IndexRebuildOptions& options);

}  // namespace siltfs
