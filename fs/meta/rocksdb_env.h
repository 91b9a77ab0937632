// RocksDB's file system over Env, so that the metadata's files use the same device as all other
// files: the machine's, or a simulated one with power cuts and failing calls.
//
// Threads and clocks remain RocksDB's own. Thread-safety: as RocksDB requires of a file system.
// Errors: kNoSpace becomes RocksDB's NoSpace, kCorruption Corruption, and kNotFound NotFound or
// PathNotFound, as in RocksDB's own file system; all others become IOError with the Status's text.
// The end of a table is checked before it is opened (table_check.h). Durability: RocksDB's Sync is
// File::Sync, a directory's Fsync is SyncDirectory. Nothing is preallocated, mapped or read ahead
// here.
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

// By file name: the number of bytes to read of a MANIFEST (see sync_ledger.h).
using ManifestLengths = std::map<std::string, uint64_t>;

// The environment to open a database with; it must outlive the database. `env` must outlive both.
// `ledger` may be null; otherwise each sync of a log is reported to it, and it must outlive both,
// too.
std::unique_ptr<rocksdb::Env> NewRocksDbEnv(Env& env, SyncLedger* ledger = nullptr,
                                            ManifestLengths lengths = {});

}  // namespace siltfs
