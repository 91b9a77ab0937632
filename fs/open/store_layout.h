// Paths in a store's directory, besides the segments (store/segment/segment_files.h) and the
// superblock's copies (store/superblock/superblock.h).
#pragma once

#include <string>

#include "store/env/files.h"

namespace siltfs {

// Locked by the process that has the store open; empty.
inline std::string LockPath(const std::string& store) { return JoinPath(store, "lock"); }
// The metadata's key-value store.
inline std::string MetadataPath(const std::string& store) { return JoinPath(store, "meta"); }
// The sync ledger: how much of the metadata's logs was synced.
inline std::string LedgerPath(const std::string& store) { return JoinPath(store, "meta.ledger"); }
// A repair makes new metadata from damaged metadata, in the directory `meta.new`. When the new
// metadata is complete, this directory is renamed to `meta.salvaged`. The sync ledger of the new
// metadata, `meta.new.ledger`, keeps this name until it replaces the old sync ledger.
inline std::string NewMetadataPath(const std::string& store) { return JoinPath(store, "meta.new"); }
inline std::string NewLedgerPath(const std::string& store) {
  return JoinPath(store, "meta.new.ledger");
}
inline std::string SalvagedMetadataPath(const std::string& store) {
  return JoinPath(store, "meta.salvaged");
}
// Damaged metadata, as a repair found it. It is never read.
inline std::string DamagedMetadataPath(const std::string& store) {
  return JoinPath(store, "meta.damaged");
}
// The chunk index.
inline std::string IndexPath(const std::string& store) { return JoinPath(store, "index"); }
// An empty directory that exists while the chunk index is being rebuilt.
inline std::string IndexRebuildPath(const std::string& store) {
  return JoinPath(store, "index.rebuild");
}
// The segment guide (fs/guide/segment_guide.h).
inline std::string GuidePath(const std::string& store) { return JoinPath(store, "index.guide"); }
// The super-features of recompressed chunks (fs/deltas/near_duplicates.h).
inline std::string LshPath(const std::string& store) { return JoinPath(store, "index.lsh"); }
// Data that garbage collection sorts and cannot keep in memory. It is useless after the collection.
inline std::string SpillPath(const std::string& store) { return JoinPath(store, "gc"); }

// The address of the bucket that has the sealed segments (fs/bucket/bucket_config.h).
inline std::string BucketConfigPath(const std::string& store) { return JoinPath(store, "bucket"); }
// Local files of sealed segments that a bucket has, or will have (store/bucket).
inline std::string BucketCachePath(const std::string& store) {
  return JoinPath(store, "bucket.cache");
}
// The random id of this copy of the store, as a writer of the bucket's log (fs/bucket).
inline std::string BucketWriterPath(const std::string& store) {
  return JoinPath(store, "bucket.writer");
}
// The requests to the bucket over the life of the store (fs/bucket/bucket_usage.h).
inline std::string BucketUsagePath(const std::string& store) {
  return JoinPath(store, "bucket.usage");
}

// Disk space kept in reserve for a full disk (store/env/space_reserve.h).
inline std::string ReservePath(const std::string& store) { return JoinPath(store, "reserve"); }

}  // namespace siltfs
