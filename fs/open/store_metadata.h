// Opens the metadata of an unmounted store with the engine that its superblock names.
#pragma once

#include <memory>
#include <string>

#include "fs/kv/kv_store.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct Superblock;

// Where a store's metadata is.
KvStoreOptions MetadataOptionsOf(const std::string& store, KvStoreOptions::Mode mode);

// Opens the metadata. The caller holds the store's lock. Errors: OpenKvStore's.
Result<std::unique_ptr<KvStore>> OpenStoreMetadata(Env& env, const Superblock& superblock,
                                                   const std::string& store,
                                                   KvStoreOptions::Mode mode);

// Like OpenStoreMetadata, for a store with a superblock: if there is no metadata, it was lost, and
// the result is kCorruption.
Result<std::unique_ptr<KvStore>> OpenExistingMetadata(Env& env, const Superblock& superblock,
                                                      const std::string& store,
                                                      KvStoreOptions::Mode mode);

}  // namespace siltfs
