// A second metadata engine, for tests: a map in memory, and a log in one file. Tests use it to show
// that a store works on another engine, and that no caller depends on RocksDB.
//
// The log is `log` in the store's directory. Each Write appends one record and syncs the file;
// CloseCleanly appends a record of the clean close. Opening replays the records. Only the last
// record can be torn, because each one is durable before the next one is written. So if a whole
// record follows a broken one, the log is damaged. The file only grows. Thread-safety: as KvStore.
#pragma once

#include "fs/kv/metadata_engine.h"

namespace siltfs::testing {

inline constexpr std::string_view kLogEngineName = "log";

// Adds the engine to the table of engines until the program ends. Later calls do nothing.
void RegisterLogEngine();

extern const MetadataEngine kLogEngine;

}  // namespace siltfs::testing
