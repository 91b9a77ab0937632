// Files that refer to chunks or recipe nodes that nobody can read any more: they are kept, and what
// is lost of them becomes holes.
//
// A chunk counts as lost only if no segment has a place where it can be read, whatever the index
// says. The new recipes' nodes are durable before anything refers to them; then all files change
// in one write.
//
// Not thread-safe. Memory: the names of the chunks in question, and what changes. Errors: Env's,
// and the key-value store's.
#pragma once

#include <vector>

#include "fs/check/check_store.h"
#include "fs/repair/repair_session.h"

namespace siltfs {

// `found`: what a check has found to be lost, in any order. What is lost indeed, and a hole now, by
// inode and offset. Afterwards the store is one that was not unmounted, if anything was changed.
Result<std::vector<LostRange>> RepairContents(RepairSession& session,
                                              const CheckOptions& check_options,
                                              std::vector<LostRange> found);

}  // namespace siltfs
