// The one file of the map engine: all entries, sorted by name, and the sequence up to which they
// are complete. Format: docs/format.md, "Map snapshot". Functions only, safe to call from any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/env/env.h"

namespace siltfs {

using ChunkMap = std::map<ChunkName, Location>;

struct MapSnapshot {
  uint64_t sequence = 0;
  ChunkMap entries;
};

std::string EncodeMapSnapshot(const ChunkMap& entries, uint64_t sequence);

// kCorruption if the bytes are not as EncodeMapSnapshot writes them, kNeedsNewer for a later
// version.
Result<MapSnapshot> DecodeMapSnapshot(ByteView bytes);

std::string MapSnapshotPath(const std::string& directory);

// Reads the snapshot; it is empty if there is no file.
Result<MapSnapshot> ReadMapSnapshot(Env& env, const std::string& path);

}  // namespace siltfs
