// Collects damage of files' contents: one finding per file and kind, with a path if there is one.
//
// Not thread-safe. Memory: entries for the first 10,000 files; the rest become one finding.
#pragma once

#include <map>
#include <string>

#include "fs/check/check_context.h"

namespace siltfs {

class FileDamages {
 public:
  // The finding gets the `message` of the lowest offset.
  void Add(uint64_t inode, const char* code, uint64_t offset, std::string message);
  Status Report(CheckContext& context, const KvSnapshot& snapshot) const;

 private:
  struct Damage {
    uint64_t count = 0;
    uint64_t offset = 0;
    std::string message;
  };
  static constexpr size_t kMostFiles = 10'000;

  std::map<std::pair<uint64_t, std::string>, Damage> damages_;
  uint64_t beyond_ = 0;
};

}  // namespace siltfs
