// The second metadata engine, for tests: a map in memory over a log in one file. It shows that the
// seam between the store and its metadata engine holds, and that no caller depends on RocksDB.
//
// The log is `log` in the store's directory. Each Write appends one record and syncs the file;
// CloseCleanly appends a record that says so. Opening replays the records. Only the last record can
// be torn, because each one is durable before the next; a whole record after a broken one is
// therefore damage. The file only grows. Thread-safety: as KvStore.
#pragma once

#include "fs/kv/metadata_engine.h"

namespace siltfs::testing {

inline constexpr std::string_view kLogEngineName = "log";

// Adds the engine to the table, once, until the program ends.
void RegisterLogEngine();

extern const MetadataEngine kLogEngine;

}  // namespace siltfs::testing
