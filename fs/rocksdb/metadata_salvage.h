// Reads all undamaged entries of a damaged key-value store (rocksdb_store.h), without RocksDB;
// read-only.
//
// Reads the table blocks and log records with right checksums (table_salvage.h, log_salvage.h) and
// merges them. Of all changes of a key, the one with the highest number is used. The MANIFEST
// selects the live files if the sync ledger confirms that it is whole. Otherwise all files are
// used. If the newest change of a key is lost, the result has the state before this change: an
// older value, or a value that had been removed.
//
// Any thread. Memory: 1 MiB and a block for each table that is being read, the first change of
// every table, and the changes in the logs. Only tables with overlapping keys, usually about
// twenty, are read at the same time. Errors: Env's if the directory cannot be listed, and those of
// `visit`. Damaged or missing files are no error.
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
