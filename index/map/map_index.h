// The simplest engine: a map in memory, written whole at each Flush. Benchmarks compare the costs
// of other engines with this one, and tests compare their answers with it.
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

// Opens the index. kCorruption if the snapshot is damaged; it is one file with one checksum.
Result<std::unique_ptr<ChunkIndex>> OpenMapIndex(Env& env, const MapIndexOptions& options);

}  // namespace siltfs
