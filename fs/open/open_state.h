// Opens one state of a store for reading: a snapshot of its metadata, with its segments. The state
// does not change. A mount that follows a writer opens one state after another, and several may be
// open at a time (fs/follow).
//
// Nothing is locked, recovered or written. The caller has brought everything to which the metadata
// refers.
//
// Thread-safety: any thread. Ownership: what the parts point to must outlive the file system.
// Errors: those of FileSystem::Open; a rollback that is not complete
// makes the state one that cannot be opened.
#pragma once

#include <memory>

#include "fs/interface/file_system.h"
#include "fs/kv/kv_store.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {

class SegmentGuide;

struct StateParts {
  Superblock superblock;
  std::shared_ptr<const KvSnapshot> metadata;
  std::shared_ptr<SegmentStore> segments;  // open ones, too
  // Finds the chunks of sealed segments: it must cover them, or have them among those that it could
  // not cover. The names of chunks in open segments are read from the blocks, and kept in memory.
  SegmentGuide* guide = nullptr;
};

// Of the options: `store`, for messages and temporary files; `snapshot_directory`,
// `capacity_bytes`, the sizes of caches, the threads of readahead and `report`.
Result<std::unique_ptr<FileSystem>> OpenState(Env& env, FileSystemOptions options,
                                              StateParts parts);

}  // namespace siltfs
