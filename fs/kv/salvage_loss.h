// What a metadata engine's salvage read, and what is lost.
//
// Plain values. Units: bytes and counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace siltfs {

// The known losses of a file.
struct SalvageLoss {
  std::string path;
  bool missing = false;                   // the file does not exist or cannot be opened
  uint64_t bytes = 0;                     // damaged bytes
  uint64_t read = 0;                      // changes that were read
  std::optional<uint64_t> expected = {};  // changes in the file; unset if unknown
};

// The result of MetadataEngine::salvage.
struct MetadataSalvage {
  uint64_t entries = 0;             // visited entries
  uint64_t tables = 0;              // tables read
  bool manifest_known = false;      // the engine's MANIFEST said which files belong to the store
  std::vector<SalvageLoss> losses;  // by path
};

}  // namespace siltfs
