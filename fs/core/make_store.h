// Makes an empty store: what `siltfs mkfs` does.
#pragma once

#include <cstdint>
#include <string>

#include "index/open_index.h"
#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

struct MakeStoreOptions {
  std::string path;  // made if it is not there; otherwise an empty directory
  uint32_t chunk_min = 2u << 10;
  uint32_t chunk_avg = 8u << 10;
  uint32_t chunk_max = 64u << 10;
  int compression_level = 3;  // zstd's; 0: none
  IndexEngine index_engine = IndexEngine::kSilt;
  uint64_t index_memory = 44u << 20;  // bytes
};

// kNotEmpty if there is anything in the directory, kInUse if a daemon holds the store in it,
// kInvalidArgument for options that make no sense. Everything is durable on return; a failure or
// crash in between leaves a directory that no one takes for a store (the superblock is written
// last).
Status MakeStore(Env& env, const MakeStoreOptions& options);

}  // namespace siltfs
