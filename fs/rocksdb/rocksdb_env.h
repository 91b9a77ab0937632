// RocksDB's file system over Env, so that the metadata's files use the same device as all other
// files. The device is the machine's, or a simulated one with power cuts and failing calls.
//
// Threads and clocks remain RocksDB's own. Thread-safety: as RocksDB requires of a file system.
// Errors: kNoSpace becomes RocksDB's NoSpace, and kCorruption becomes Corruption. kNotFound becomes
// NotFound or PathNotFound, as in RocksDB's own file system. All other errors become IOError with
// the Status's text. The end of a table is checked before RocksDB opens the table (table_check.h).
// Durability: RocksDB's Sync calls File::Sync, and its Fsync of a directory calls SyncDirectory.
// This file system does not preallocate, map or read ahead.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "store/env/env.h"

namespace rocksdb {
class Env;
}

namespace siltfs {

class SyncLedger;

// For each MANIFEST, by file name: the number of its bytes to read (see sync_ledger.h).
using ManifestLengths = std::map<std::string, uint64_t>;

// Returns the environment with which a database is opened. The environment must outlive the
// database, and `env` must outlive the environment. If `ledger` is not null, each sync of a log is
// reported to the ledger, and the ledger must outlive the environment, too.
std::unique_ptr<rocksdb::Env> NewRocksDbEnv(Env& env, SyncLedger* ledger = nullptr,
                                            ManifestLengths lengths = {});

}  // namespace siltfs
