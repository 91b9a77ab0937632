// Reads all undamaged entries of a damaged key-value store (rocksdb_store.h), without RocksDB;
// read-only.
//
// Reads the tables and logs whose checksums are right (table_salvage.h, log_salvage.h) and merges
// them: the newest change of a key, by number, wins. The MANIFEST selects the live files if the
// sync ledger confirms it; otherwise all files are used. So if the newest change of a key is lost,
// an older change shows: an older value, or a value that had been removed.
//
// Any thread. Memory: 1 MiB and a block for each table being read, the first key of every table,
// and the logs' changes. Tables whose keys overlap are read at the same time, some twenty. Errors:
// damaged or missing files are no error; Env's if the directory cannot be listed, and `visit`'s.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fs/kv/salvage_loss.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// Whether the directory has files of a key-value store, at least one of them not empty. Any thread.
Result<bool> HasMetadataFiles(Env& env, const std::string& directory);

// Calls `visit` with every key and its value, in key order. The directory and the ledger may be
// missing.
Result<MetadataSalvage> SalvageMetadata(
    Env& env, const std::string& directory, const std::string& ledger_path,
    const std::function<Status(std::string_view key, std::string_view value)>& visit);

}  // namespace siltfs
