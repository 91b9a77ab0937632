// The space that snapshots take: for each one its new bytes, and the bytes that its deletion would
// free (docs/glossary.md, "new bytes" and "freed bytes").
//
// The units are the uncompressed bytes of distinct chunks, recipe nodes included. A chunk belongs
// to a snapshot if the snapshot shows a record that refers to it, directly or through nodes. Each
// record comes with the first and the last snapshot that show it (shown_values.h); the live files
// count as a snapshot after all others. The first and the last snapshot of a chunk are the least
// and the greatest of its references. The chunk is new in the first one, and it is freed with it if
// the last one is the same. So only these two numbers are needed for a chunk, not a set of
// snapshots.
//
// References are sorted by name, so there is no lookup for a chunk. Nodes pass their two numbers on
// to their items, and each node is read once (level_walk.h).
//
// Chunks are told apart by the first 64 bits of their names. Of 100 million chunks, two are
// confused with a probability of 0.03 %, and then the bytes of one of them are not counted.
//
// Thread-safety: one thread. Memory: about twice `memory_bytes`, and 16 bytes for each snapshot.
// Cost: one walk over records and versions of inodes and overlays, and one read of each distinct
// node. For each distinct reference it sorts 16 bytes, for each reference to a node 128 bytes more.
// What does not fit into memory is written once, and read once; with the default memory that holds
// for up to 260 million references. Errors: those of metadata, nodes, sorting (reference_sorter.h)
// and pace; kCorruption for what cannot be decoded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/mark/mark.h"
#include "fs/recipe/recipe_node.h"
#include "fs/versions/version_keeper.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct SnapshotSpaceOptions {
  // Directory for references that do not fit into memory. The files there have no names. If the
  // directory does not exist, it is created when it is needed; the caller removes it.
  std::string spill_directory;
  size_t memory_bytes = 16u << 20;
  MarkPace pace = {};
  ProgressMeter* progress = nullptr;  // counts the walked records of inodes; may be null
  // Free space to leave on the disk; kNoSpace if less would remain.
  uint64_t minimum_free_bytes = 64u << 20;
  // Chunks that garbage collection keeps although no metadata refers to them. May be empty.
  MoreReferences more = {};
};

struct SnapshotBytes {
  uint64_t new_bytes = 0;
  uint64_t freed_bytes = 0;

  bool operator==(const SnapshotBytes&) const = default;
};

struct SnapshotSpaces {
  std::vector<SnapshotBytes> snapshots;  // in the order of the given snapshots
  uint64_t nodes = 0;                    // read
  uint64_t spilled_bytes = 0;            // written
};

// Measures these snapshots, which must be all those that are not being removed, ascending. What
// only snapshots show that are being removed does not count.
Result<SnapshotSpaces> MeasureSnapshots(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                        const std::vector<SnapshotBounds>& snapshots,
                                        const SnapshotSpaceOptions& options);

}  // namespace siltfs
