// The key-value store on RocksDB, in a directory of its own.
//
// Memory: about 16 MiB for any store size (docs/architecture.md, "Memory"). This is for two write
// buffers of 4 MiB (less on a small disk: MetadataBufferBytes), 6 MiB of block cache with the index
// and filter blocks, and a bounded table cache. Flushes and compactions have one thread each. The
// limit of the block cache is not strict. With a strict limit, RocksDB would fail reads, including
// those of compactions, while all blocks in the cache are in use.
//
// Recovery: opening after a crash replays the log up to the first record that is not whole. RocksDB
// also ends the replay, without an error, at a damaged record in the middle of the log
// (rocksdb_store_test.cc shows this). So the sync ledger, which records the synced lengths, is
// checked first, and the caller compares the commit number with the segments and the superblock.
//
// Errors: kNotFound if there is no store and the mode is kOpen or kReadOnly; kAlreadyExists if
// there is one and the mode is kCreate; kCorruption, kNoSpace and kIoError. All have the path.
// kNoSpace leaves the store usable: the next Write first calls RocksDB's Resume. Durability: see
// KvStore. The caller syncs the directory's name in its parent. Several stores may be open in one
// process; they share their background threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fs/kv/kv_store.h"
#include "store/env/env.h"

namespace siltfs {

// The size of a write buffer for a disk of this size. On a small disk the buffers are small,
// because the extra space that RocksDB needs grows with them. Recovery writes tables from the logs
// of two buffers before it can delete any file. A flush or compaction writes new files before it
// removes old ones.
uint64_t MetadataBufferBytes(uint64_t disk_bytes);

// All files are accessed through `env`, which must outlive the store and its snapshots.
Result<std::unique_ptr<KvStore>> OpenRocksDbStore(Env& env, const KvStoreOptions& options);

}  // namespace siltfs
