// Metadata that RocksDB cannot open or read, made anew from what can be read of its files
// (fs/meta/metadata_salvage.h).
//
// The damaged files are only read. What comes of them is written beside them, to meta.new, with the
// records of the store as a whole made so that it may be opened (record_rebuild.h). When that is
// durable it is called meta.salvaged; then meta becomes meta.damaged, the new ledger takes the old
// one's place, and meta.salvaged becomes meta. Each step is durable before the next. So whatever
// interrupts it leaves the damaged metadata as it was, or none at all, upon which no mount opens
// the store, and the next repair goes on. Both fit beside each other on the disk, or nothing is
// changed.
//
// The damaged files are kept: somebody may get more out of them.
//
// The caller holds the store's lock. Errors: Env's and the key-value store's; kNoSpace leaves all
// as it was, and so does kCorruption where there is no metadata at all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fs/meta/metadata_salvage.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct RebuiltMetadata {
  MetadataSalvage salvaged;
  bool resumed = false;  // an earlier repair had salvaged it: nothing is known of what was lost
  bool kept = false;     // the damaged files are in DamagedMetadataPath
};

struct MetadataRebuildOptions {
  std::string store;
  // Called now and then with the number of entries so far; a failure ends the rebuild.
  std::function<Status(uint64_t entries)> on_progress;
};

Result<RebuiltMetadata> RebuildMetadata(Env& env, const MetadataRebuildOptions& options);

// What an interrupted rebuild has left of a store whose metadata is whole. Durable when something
// else in the store's directory is made so.
Status RemoveRebuildLeftovers(Env& env, const std::string& store);

}  // namespace siltfs
