// The key-value store on RocksDB, in a directory of its own.
//
// Memory: about 16 MiB for any store size (docs/architecture.md, "Memory"): two write buffers of 4
// MiB, or less on a small disk (MetadataBufferBytes); 6 MiB of block cache, including the index and
// filter blocks; a bounded table cache. Flushes and compactions have one thread each. The cache's
// limit is not strict: with a strict limit RocksDB fails reads, also of compactions, when all
// blocks are in use.
//
// Recovery: opening after a crash replays the log up to the first record that is not whole. RocksDB
// silently treats a damaged record in the middle as such a torn end (measured:
// rocksdb_store_test.cc). So the sync ledger, which records the synced lengths, is checked first,
// and the caller compares the commit number with the segments and the superblock.
//
// Errors: kNotFound (mode kOpen or kReadOnly, no store there), kAlreadyExists (kCreate),
// kCorruption, kNoSpace, kIoError, with the path. kNoSpace leaves the store usable: the next Write
// first calls RocksDB's Resume. Durability: see KvStore. The caller syncs the directory's name in
// its parent. Several stores may be open in one process; they share their background threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fs/kv/kv_store.h"
#include "store/env/env.h"

namespace siltfs {

// The size of a write buffer for a disk of this size. Recovery writes the logs of two buffers as
// tables before any file can be deleted, and a flush or compaction writes before it removes. Small
// buffers keep this extra space a small part of a small disk.
uint64_t MetadataBufferBytes(uint64_t disk_bytes);

// All files are accessed through `env`, which must outlive the store and its snapshots.
Result<std::unique_ptr<KvStore>> OpenRocksDbStore(Env& env, const KvStoreOptions& options);

}  // namespace siltfs
