// Finds the files below given paths that have the same content as another one of them, from their
// recipes alone.
//
// The recipes of two files without an overlay are equal if and only if their contents are
// (fs/recipe/recipe.h). Recipes are compared by two checksums with secret seeds, 128 bits in all.
// Names of the same inode are one file. A file with an overlay, which is being written, is counted
// and not compared.
//
// The walk below the paths sorts all names by inode, then the files by their checksums, so that
// equal ones come together. Only the groups that save most are kept. The first file of each group
// then takes part in the search for files that share parts (shared_parts.h), if that is wanted.
//
// Thread-safety: one thread. Memory: twice `memory_bytes`, and some 50 bytes for each file of the
// groups that are kept. Cost: one walk below the paths; 64 bytes to sort for each name, and again
// for each file. Without that search, no recipe node is
// read. Errors: those of metadata, sorting (reference_sorter.h),
// the pace and the scope.
#pragma once

#include "fs/interface/space_usage.h"
#include "fs/kv/kv_store.h"
#include "fs/recipe/recipe_node.h"
#include "fs/space/path_usage.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// Of the options it uses those for spilling and the pace.
Result<DuplicateReport> FindDuplicateFiles(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                           const DuplicateRequest& request,
                                           const UsageOptions& options);

}  // namespace siltfs
