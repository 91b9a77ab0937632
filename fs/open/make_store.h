// Makes an empty store, for `siltfs mkfs`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "index/index_engine.h"
#include "store/base/status.h"
#include "store/env/env.h"
#include "store/env/file_owner.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

struct MakeStoreOptions {
  std::string path;  // of the store's directory; made if it is missing, else it must be empty
  uint32_t chunk_min = 2u << 10;
  uint32_t chunk_avg = 8u << 10;
  uint32_t chunk_max = 64u << 10;
  int compression_level = 3;  // zstd's; 0: none
  bool deltas = false;        // recompression may store chunks as deltas; not without compression
  IndexEngine index_engine = IndexEngine::kSilt;
  uint64_t index_memory = 44u << 20;       // bytes
  EngineParameters index_parameters = {};  // those that differ from the engine's defaults
  std::string metadata_engine = {};        // empty: the default engine
  std::string label = {};                  // empty: none
  FileOwner root_owner = {};               // of the file system's root directory
  bool chunks_only = false;  // the store holds chunks without files (fs/library), without deltas
  // Not empty: sealed segments are not in the store's directory (Superblock::in_bucket). Makes
  // their place; called when the directory is complete but for the superblock.
  std::function<Status(const StoreUuid& uuid)> make_segment_place = {};
};

// Makes the store. kNotEmpty if the directory has anything but the remains of an earlier MakeStore;
// kInUse if a daemon has locked a store in the directory; kInvalidArgument for invalid options. The
// store is durable on return. After a failure, MakeStore removes the files that it has made. A
// crash leaves a directory that the next MakeStore accepts (unfinished_store.h). This directory
// cannot be opened as a store unless it is complete, because the superblock is the last file that
// is written.
Status MakeStore(Env& env, const MakeStoreOptions& options);

}  // namespace siltfs
