// Makes the chunk index of a store anew from its segments: what `siltfs index rebuild` does, and a
// repair. The same replay of blocks as at a mount whose index is missing.
//
// The old index goes first, so that the new one needs no room beside it. Whatever cuts this short
// leaves an index that is whole up to some block and says so: the next mount goes on from there. A
// mark beside it (IndexRebuildPath) tells so too, for commands that only look at the index.
// Metadata and superblock are not written to; a store that was unmounted stays so.
//
// Thread-safety: any thread. Memory: the index's, and ReplayBlocks's. Errors: kNotFound if there is
// no store, kInUse if someone has it mounted, kNeedsNewer for a later version's, kCorruption where
// metadata does not say which segments there are, or is older than they; kInterrupted; Env's. What
// is damaged in segments is reported, and left out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct IndexRebuildOptions {
  std::string store;  // path
  // Told of damage met in segments, in a sentence; may be empty.
  std::function<void(const std::string&)> report;
  // Told how many segments are done, of how many; may be empty.
  std::function<void(uint64_t done, uint64_t total)> on_progress;
  // Asked now and then; true ends it with kInterrupted. May be empty.
  std::function<bool()> interrupted;
};

struct RebuiltIndex {
  std::string engine;
  uint64_t segments = 0;
  uint64_t chunks = 0;      // in them, of files and recipe nodes
  uint64_t entries = 0;     // of the index (IndexStats::entries)
  uint64_t damages = 0;     // reported
  int64_t nanoseconds = 0;  // that it took
};

// A store that was not unmounted is first recovered, as a mount and an unmount would.
Result<RebuiltIndex> RebuildIndex(Env& env, const IndexRebuildOptions& options);

// The caller holds the store's lock. kInvalidArgument if it was not unmounted.
Result<RebuiltIndex> RebuildLockedIndex(Env& env, const IndexRebuildOptions& options);

}  // namespace siltfs
