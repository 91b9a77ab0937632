// Collects damage of files' contents. Reports one finding for each file and kind of damage, with
// the file's path if it has one. A version of a file that snapshots show counts as a file of its
// own, because it may be damaged while the live file is whole, and the reverse.
//
// Not thread-safe. Memory: the first 10,000 findings; all further damage shares one finding.
#pragma once

#include <map>
#include <string>

#include "fs/check/check_context.h"
#include "fs/versions/snapshot_paths.h"

namespace siltfs {

class FileDamages {
 public:
  // Adds damage to the finding of this file (or version) and code. The finding gets the lowest
  // `offset`, and the `message` of the damage there.
  void Add(const FileVersion& file, const char* code, uint64_t offset, std::string message);
  Status Report(CheckContext& context, const KvSnapshot& snapshot) const;

 private:
  struct Damage {
    uint64_t count = 0;
    uint64_t offset = 0;
    std::string message;
  };
  static constexpr size_t kMostFiles = 10'000;

  std::map<std::pair<FileVersion, std::string>, Damage> damages_;
  uint64_t beyond_ = 0;
};

}  // namespace siltfs
