// The key-value store on RocksDB, in a directory of its own.
//
// Memory: about 16 MiB whatever the size of the store (DESIGN section 3): two write buffers of 4
// MiB, or less on a small disk (MetadataBufferBytes), 6 MiB of block cache with the index and filter blocks in it, a bounded table cache, one
// thread each for flushes and compactions. The cache's limit is not strict: under a strict one
// RocksDB answers a read with an error when all blocks are in use, compactions included. Recovery:
// opening after a crash replays the log up to the first record that is not whole. RocksDB takes a
// damaged record in the middle for such a tail and says nothing (measured: rocksdb_store_test.cc);
// so the sync ledger is asked first, which knows what was synced, and the caller compares the
// commit number found with what segments and superblock admit. Errors: kNotFound (mode kOpen or
// kReadOnly, nothing there), kAlreadyExists (kCreate), kCorruption, kNoSpace, kIoError, with the
// path. kNoSpace leaves the store usable: the next Write first has RocksDB resume. Durability: see
// KvStore. The directory's own name in its parent is the caller's to sync. Several stores may be
// open in one process; their background threads are shared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fs/meta/kv_store.h"
#include "store/env/env.h"

namespace siltfs {

// The size of a write buffer for a disk of this size. After a crash the logs of two are written as
// tables before anything can be deleted, and a flush or compaction writes before it removes: of a
// small disk that takes a small part.
uint64_t MetadataBufferBytes(uint64_t disk_bytes);

struct RocksDbOptions {
  enum class Mode : uint8_t {
    kCreate,    // the directory is made if need be; there must be no store in it
    kOpen,      // recovers, which writes
    kReadOnly,  // writes nothing to disk; a log left by a crash is replayed in memory. Writes
                // answer kReadOnly
  };
  std::string path;
  Mode mode = Mode::kOpen;
  // The sync ledger beside the directory (sync_ledger.h): checked before anything is opened, in
  // every mode, then kept. Empty: there is none, and damage of a log may pass for its torn end.
  std::string ledger_path = {};
};

// `env` is what all its files stand on; it must outlive the store and its snapshots.
Result<std::unique_ptr<KvStore>> OpenRocksDbStore(Env& env, const RocksDbOptions& options);

}  // namespace siltfs
