// How well super-features choose bases of deltas: compared with the best base among all earlier
// chunks of a sample, by the sizes of the deltas that zstd makes.
//
// Errors: throws BenchFailure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace siltfs {

struct DeltaRecallArguments {
  std::vector<std::string> paths;  // files and directories
  uint32_t chunk_bytes = 8192;     // mean
  uint64_t sample = 2000;          // chunks
  uint64_t candidates = 4;         // that are tried for a chunk
  std::string directory;           // of the index
  unsigned threads = 2;            // of the search for the best bases
  uint64_t seed = 1;
};

nlohmann::ordered_json MeasureDeltaRecall(const DeltaRecallArguments& arguments);

}  // namespace siltfs
