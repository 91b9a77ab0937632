// Finds the paths of directories in one state of the metadata.
//
// Not thread-safe. Ownership: borrows the state, which must outlive it. Memory: the paths of at
// most kMostKnown directories. Errors: those of the key-value store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "fs/kv/kv_store.h"

namespace siltfs {

class DirectoryPaths {
 public:
  explicit DirectoryPaths(const KvSnapshot& state) : state_(state) {}

  // Returns the directory's path from the root with a slash at the end, such as "/a/b/"; empty if
  // its parents do not lead to the root. Reads the names in each directory above it.
  Result<std::string> PathOf(uint64_t directory);

 private:
  static constexpr size_t kMostKnown = 1u << 14;

  Result<std::string> Find(uint64_t directory, int depth);
  Result<std::optional<std::string>> NameIn(uint64_t parent, uint64_t child) const;

  const KvSnapshot& state_;
  std::map<uint64_t, std::string> known_;
};

}  // namespace siltfs
