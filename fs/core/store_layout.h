// What lies where in a store's directory, beside the segments (store/segment/segment_files.h) and
// the superblock's copies (store/superblock/superblock.h).
#pragma once

#include <string>

#include "store/env/files.h"

namespace siltfs {

// Locked by whoever has the store open; empty.
inline std::string LockPath(const std::string& store) { return JoinPath(store, "lock"); }
// The metadata's key-value store.
inline std::string MetadataPath(const std::string& store) { return JoinPath(store, "meta"); }
// How much of the metadata's logs was synced.
inline std::string LedgerPath(const std::string& store) { return JoinPath(store, "meta.ledger"); }
// The chunk index.
inline std::string IndexPath(const std::string& store) { return JoinPath(store, "index"); }
// What garbage collection sorts and cannot keep in memory; of no use to anyone afterwards.
inline std::string SpillPath(const std::string& store) { return JoinPath(store, "gc"); }

// Disk space kept for a disk that is full (store/env/space_reserve.h).
inline std::string ReservePath(const std::string& store) { return JoinPath(store, "reserve"); }

}  // namespace siltfs
