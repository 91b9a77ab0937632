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
// What a repair makes of damaged metadata: while it is being made, and when it is whole; each a
// directory, the first with its own ledger beside it, which stays there until it takes its place.
inline std::string NewMetadataPath(const std::string& store) { return JoinPath(store, "meta.new"); }
inline std::string NewLedgerPath(const std::string& store) {
  return JoinPath(store, "meta.new.ledger");
}
inline std::string SalvagedMetadataPath(const std::string& store) {
  return JoinPath(store, "meta.salvaged");
}
// Metadata that was damaged, as a repair has found it. Nobody reads it.
inline std::string DamagedMetadataPath(const std::string& store) {
  return JoinPath(store, "meta.damaged");
}
// The chunk index.
inline std::string IndexPath(const std::string& store) { return JoinPath(store, "index"); }
// There while the chunk index is being made anew: a directory with nothing in it.
inline std::string IndexRebuildPath(const std::string& store) {
  return JoinPath(store, "index.rebuild");
}
// What garbage collection sorts and cannot keep in memory; of no use to anyone afterwards.
inline std::string SpillPath(const std::string& store) { return JoinPath(store, "gc"); }

// Disk space kept for a disk that is full (store/env/space_reserve.h).
inline std::string ReservePath(const std::string& store) { return JoinPath(store, "reserve"); }

}  // namespace siltfs
