// Which files use chunks that are damaged and lie whole nowhere.
//
// Thread-safety: any thread; the store may be in use, and what is found is true of the snapshot.
// Memory: 8 bytes a chunk that is known to be damaged, some 60 for each that was looked for and for
// each recipe node above the leaves that leads to one, some 25 for each other such node
// (subtree_set.h), and the files that are returned. A subtree that many places share is walked
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fs/dedup/chunk_store.h"
#include "fs/meta/kv_store.h"

namespace siltfs {

struct DamagedFile {
  uint64_t inode = 0;
  uint64_t offset = 0;  // of the first byte that cannot be read
  uint64_t bytes = 0;   // that cannot be read
};

struct DamagedFiles {
  std::vector<DamagedFile> files;  // ascending inodes; no more than were asked for
  uint64_t count = 0;              // of all
};

// Reads all recipes, and the chunks in question. Fails as metadata does, and with what `pace`
// returns, which is called for each file.
Result<DamagedFiles> FindDamagedFiles(const KvSnapshot& metadata, ChunkStore& chunks,
                                      std::span<const DamagedBlock> damage, size_t most,
                                      const std::function<Status()>& pace);

}  // namespace siltfs
