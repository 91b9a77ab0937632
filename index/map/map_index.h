// The simplest engine: a map in memory, written whole at each Flush. Benchmarks compare the costs
// of other engines with the costs of this engine, and tests compare the answers.
//
// Thread-safety, errors and durability: index/chunk_index.h. A snapshot replaces its predecessor
// atomically, so a failed Flush may be repeated. Memory: about 80 bytes per entry, 32 more during a
// Flush, and 80 more during ForEach. When not to use it: beyond some hundred thousand chunks.
#pragma once

#include <memory>
#include <string>

#include "index/chunk_index.h"
#include "index/index_engine.h"
#include "store/env/env.h"

namespace siltfs {

// The row of this engine in the table of engines.
extern const IndexEngineRow kMapIndexEngine;

struct MapIndexOptions {
  std::string directory;
  bool read_only = false;
};

// Opens the index. Returns kCorruption if the snapshot is damaged: the file has only one checksum,
// so no part of a damaged snapshot is used.
Result<std::unique_ptr<ChunkIndex>> OpenMapIndex(Env& env, const MapIndexOptions& options);

}  // namespace siltfs
