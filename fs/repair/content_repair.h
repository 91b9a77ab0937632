// Repairs files that refer to unreadable chunks or recipe nodes: keeps the files, and replaces the
// lost ranges by holes. Versions of files that snapshots show are repaired in the same way.
//
// A chunk counts as lost only if no segment has a readable copy. The entries of the index do not
// matter for this. The nodes of the new recipes are durable before anything refers to them. After
// that, one write changes all versions, and another one all live files.
//
// Not thread-safe. Memory: the names of the suspect chunks, and the changes. Errors: Env's, and the
// key-value store's.
#pragma once

#include <vector>

#include "fs/check/check_store.h"
#include "fs/repair/repair_session.h"

namespace siltfs {

// `found`: the lost ranges that a check has reported, in any order. Returns the ranges that are
// really lost and are now holes, by inode and offset. If anything was changed, the store then
// counts as not unmounted. If the ranges include versions, the caller makes the list of versions
// again (RelistVersions), because it lacks new ones.
Result<std::vector<LostRange>> RepairContents(RepairSession& session,
                                              const CheckOptions& check_options,
                                              std::vector<LostRange> found);

}  // namespace siltfs
