// Reads all that can be read of a key-value store whose files are damaged (rocksdb_store.h),
// without RocksDB, and changes nothing.
//
// Tables and logs are read one by one, as far as their checksums are right (table_salvage.h,
// log_salvage.h), and laid over one another: of each key the newest change counts, by its number.
// Which files count the MANIFEST says, where the sync ledger vouches for it; otherwise all do. So a
// lost change leaves an older one of its key, if there is one: an older value, or one that had been
// removed.
//
// Any thread. Memory: 1 MiB and a block for each table that is being read (those whose keys
// overlap, some twenty), the keys at the beginning of all tables, and the logs' changes. Errors:
// none for what is damaged or missing; Env's where the directory cannot be listed, and `visit`'s.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// What is known to be lost of a file.
struct SalvageLoss {
  std::string path;
  bool missing = false;                   // there is no such file, or it cannot be opened
  uint64_t bytes = 0;                     // that are not what was written
  uint64_t read = 0;                      // changes
  std::optional<uint64_t> expected = {};  // changes; nothing if nobody knows
};

// Whether the directory has files of a key-value store, of which at least one is not empty. Any
// thread.
Result<bool> HasMetadataFiles(Env& env, const std::string& directory);

struct MetadataSalvage {
  uint64_t entries = 0;             // that were visited
  uint64_t tables = 0;              // that were read
  bool manifest_known = false;      // which files count was known
  std::vector<SalvageLoss> losses;  // by path
};

// Calls `visit` with every key and its value, in the order of keys. The directory and the ledger
// may be missing.
Result<MetadataSalvage> SalvageMetadata(
    Env& env, const std::string& directory, const std::string& ledger_path,
    const std::function<Status(std::string_view key, std::string_view value)>& visit);

}  // namespace siltfs
