// Measures what a segment guide gains when a store has lost its index: how long a search for a
// chunk takes with and without the guide, and when a mount has read its first file. A part of
// `siltfs-bench slicebloom`.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"

namespace siltfs {

struct LostIndexArguments {
  uint64_t chunks = 0;      // of the store, at least; 0: nothing is measured
  uint64_t searches = 400;  // with the guide; a search of all segments is measured a few times
  SliceBloomShape guide = FileSystemOptions().guide_shape;  // of the store's guide
  uint64_t seed = 1;
  std::string directory;  // as ScratchDirectory's parent
};

// Makes a store of short chunks, and removes it afterwards. Compares each chunk found and each file
// read. Throws BenchFailure.
nlohmann::ordered_json MeasureLostIndex(const LostIndexArguments& arguments);

}  // namespace siltfs
