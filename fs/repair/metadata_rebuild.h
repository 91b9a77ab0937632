// Rebuilds metadata that its engine (fs/kv/metadata_engine.h) cannot open or cannot read. The new
// metadata is made from the readable parts of the damaged files.
//
// The damaged files are only read. The salvaged entries are written to meta.new, with store-wide
// records that allow the store to be opened (record_rebuild.h). When meta.new is durable, it is
// renamed to meta.salvaged. After this, meta becomes meta.damaged, the new ledger replaces the old
// one, and meta.salvaged becomes meta. Each step is durable before the next one begins. So after an
// interruption, either the damaged metadata is unchanged, or there is no meta. Without meta, no
// mount opens the store, and the next repair continues. The disk must have room for the damaged and
// the new metadata; otherwise nothing is changed.
//
// The damaged files are kept, because other tools may read more of them.
//
// The caller holds the store's lock. Errors: Env's and the key-value store's. kCorruption means
// that there is no metadata at all. After kNoSpace and kCorruption nothing is changed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fs/kv/salvage_loss.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_store.h"

namespace siltfs {

struct RebuiltMetadata {
  MetadataSalvage salvaged;
  bool resumed = false;  // an interrupted repair has salvaged the metadata; its losses are unknown
  bool kept = false;     // the damaged files are in DamagedMetadataPath
};

struct MetadataRebuildOptions {
  std::string store;
  SegmentStore* segments = nullptr;  // as CheckOptions::segments
  // Called repeatedly with the number of entries so far; a failure ends the rebuild.
  std::function<Status(uint64_t entries)> on_progress;
};

Result<RebuiltMetadata> RebuildMetadata(Env& env, const MetadataRebuildOptions& options);

// Removes the leftovers of an interrupted rebuild from a store with whole metadata. The removal
// becomes durable with the next sync of the store's directory.
Status RemoveRebuildLeftovers(Env& env, const std::string& store);

}  // namespace siltfs
