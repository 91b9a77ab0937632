// Names files, and files as snapshots show them, for messages.
//
// Thread-safety: one thread. Errors: those of the key-value store. Memory: the names. Cost: one
// walk over all names for the live files, and one for each snapshot of which a file is named.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"
#include "fs/versions/version_key.h"

namespace siltfs {

// A file, or a version of it.
struct FileVersion {
  uint64_t inode = 0;
  SnapshotNumber snapshot = 0;  // that the version was kept for; 0: the live file

  auto operator<=>(const FileVersion&) const = default;
};

struct FileName {
  std::string path;       // from the root; empty if the file has none
  std::string snapshots;  // the names of the snapshots that show the version; empty: the live file
};

// Names all of these files. Paths in snapshots begin with `directory`, which is the path of the
// directory with the snapshots, and the snapshot's name. Malformed records lead to empty paths.
Result<std::map<FileVersion, FileName>> NameFiles(const KvSnapshot& metadata,
                                                  const std::set<FileVersion>& files,
                                                  std::string_view directory);

}  // namespace siltfs
