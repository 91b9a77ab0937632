// Finds the files that use lost chunks: damaged chunks of which no intact copy exists. A version of
// a file that only snapshots show counts as a file of its own.
//
// Thread-safety: any thread. The store may be in use; the result describes the snapshot. Memory:
// the returned files; 8 bytes for each chunk known to be damaged; about 60 bytes for each chunk
// that is looked up. A recipe node above the leaves takes about 60 bytes if it leads to a lost
// chunk, and 25 bytes if not (subtree_set.h). A subtree that several files share is walked once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fs/chunks/chunk_store.h"
#include "fs/kv/kv_store.h"
#include "fs/versions/snapshot_paths.h"

namespace siltfs {

struct DamagedFile {
  FileVersion file = {};
  uint64_t offset = 0;  // of the first unreadable byte
  uint64_t bytes = 0;   // unreadable
};

struct DamagedFiles {
  std::vector<DamagedFile> files;  // by ascending inode and snapshot; at most `most`
  uint64_t count = 0;              // of all damaged files
};

// Reads all recipes, and tries to read each chunk in `damage` that a file uses. Returns the files
// that use lost chunks. Calls `pace` for each file. Errors: those of metadata and of `pace`.
Result<DamagedFiles> FindDamagedFiles(const KvSnapshot& metadata, ChunkStore& chunks,
                                      std::span<const DamagedBlock> damage, size_t most,
                                      const std::function<Status()>& pace);

}  // namespace siltfs
