// Measures the space of files below given paths: what their removal would free, and what they share
// (docs/architecture.md, "The space of paths").
//
// There are no reference counts. So the references of the paths' files are compared with those of
// all other files and snapshots:
//
//   1. The walk below the paths (path_walk.h) finds their inodes. All names of an inode are sorted
//      together, so that an inode with another name outside of the paths is known.
//   2. The chunks of these inodes are sorted by name, and each goes into a filter.
//   3. The records of all other files and of all snapshots are walked, and their recipes. Only
//      chunks that the filter contains are sorted, too. If the paths have no chunk, this step is
//      left out.
//   4. One pass over the sorted references sees for each chunk all places that refer to it.
//
// A chunk belongs to a place if files of this place, or of a place below it, refer to it. It is
// exclusive to the lowest place that is above all of its references (ReportTree), and to the places
// above that one. So a measurement of many directories costs no more walks than one of a single
// file.
//
// Chunks are told apart by the first 64 bits of their names, as in snapshot_space.h.
//
// Thread-safety: one thread. Memory: `memory_bytes` for chunks, and about as much for names, inodes
// and nodes; 16 MiB for the filter; some 200 bytes for each place. Cost: step 2 is proportional to
// the paths, step 3 to the metadata of the store. Sorted are 16 bytes for each distinct reference
// of the paths, the same again for others' references to their chunks, and 16 bytes for each name.
// Errors: those of metadata, nodes, sorting (reference_sorter.h), the pace and the scope.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/interface/space_usage.h"
#include "fs/kv/kv_store.h"
#include "fs/mark/mark.h"
#include "fs/recipe/recipe_node.h"
#include "fs/versions/version_keeper.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct UsageOptions {
  // Directory for what does not fit into memory. The files there have no names. If the directory
  // does not exist, it is created when it is needed; the caller removes it.
  std::string spill_directory;
  size_t memory_bytes = 8u << 20;
  MarkPace pace = {};
  // Free space to leave on the disk; kNoSpace if less would remain.
  uint64_t minimum_free_bytes = 64u << 20;
  // Chunks that garbage collection keeps although no metadata refers to them. May be empty.
  MoreReferences more = {};
  uint64_t inodes = 0;  // in the store, for progress; 0: not known
};

// `snapshots`: all those that are not being removed, ascending. What only snapshots show that are
// being removed does not count.
Result<UsageReport> MeasureUsage(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                 const std::vector<SnapshotBounds>& snapshots,
                                 const UsageRequest& request, const UsageOptions& options);

}  // namespace siltfs
