// Checks that the head of a lineage is the state of a file system, before it becomes a snapshot:
// that names, links, cookies, parents, attributes and overlays agree, and that each directory's
// parents lead to the root. So a hostile stream cannot make a snapshot that a check of the store
// would call damaged. Computes the snapshot's counters, too.
//
// Only what differs from the base is read, because the base was checked when it was received. The
// chunks were checked when their records arrived.
//
// Not thread-safe. Memory: `memory_bytes` for sorting, and a few records. Errors: kCorruption, with
// a sentence, for the first fault; those of the key-value store and of sorting; that of `check`.
#pragma once

#include <functional>
#include <string>

#include "fs/meta/metadata_store.h"
#include "fs/versions/state_changes.h"
#include "store/env/env.h"

namespace siltfs {

struct ReceivedCheckOptions {
  ComparedLineageStates states;  // the base, and the head
  uint64_t inode_limit = 0;      // without the lineage
  Counters counters{};           // of the base
  std::string sort_directory;    // for what does not fit into memory
  size_t memory_bytes = 8u << 20;
  std::function<Status()> check;
};

// Returns the counters of the head.
Result<Counters> CheckReceived(Env& env, const ReceivedCheckOptions& options);

}  // namespace siltfs
