// RocksDB's file system over Env, so that the metadata's files stand on the same device as all
// else: the machine's, or a simulated one that loses power and fails calls.
//
// Threads and clocks stay RocksDB's own. Thread-safety: as RocksDB asks of a file system.
// Errors: kNoSpace comes out as RocksDB's NoSpace, kCorruption as Corruption, and kNotFound as
// NotFound or PathNotFound, each where its own file system says so; everything else as IOError,
// with the Status's text. A table is opened only after a look at its end (table_check.h).
// Durability: a Sync of RocksDB's is one of File, a directory's Fsync is SyncDirectory. Nothing is
// preallocated, mapped, or read ahead here.
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

// By file name: how much of a MANIFEST there is to be read (sync_ledger.h says why).
using ManifestLengths = std::map<std::string, uint64_t>;

// What a database is to be opened on; must outlive it. `env` must outlive both. `ledger`, if there
// is one, learns of each sync of a log, and must outlive both too.
std::unique_ptr<rocksdb::Env> NewRocksDbEnv(Env& env, SyncLedger* ledger = nullptr,
                                            ManifestLengths lengths = {});

}  // namespace siltfs
