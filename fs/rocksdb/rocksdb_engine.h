// RocksDB as a metadata engine: its store (rocksdb_store.h), its sync ledger (sync_ledger.h) and
// the salvage of its files (metadata_salvage.h).
#pragma once

#include "fs/kv/metadata_engine.h"

namespace siltfs {

// The row of this engine in the table of engines.
extern const MetadataEngine kRocksDbEngine;

}  // namespace siltfs
