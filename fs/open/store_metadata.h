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

// Whether the record stays that says which commits a bucket has (fs/records/position_record.h). A
// caller that writes without the layer of fs/shipping must not keep it: the next open with the
// bucket then puts the whole metadata there.
enum class BucketPosition : uint8_t { kForget, kKeep };

// Opens the metadata. The caller holds the store's lock. With kOpen and kForget, removes the
// bucket's position. Errors: OpenKvStore's.
Result<std::unique_ptr<KvStore>> OpenStoreMetadata(
    Env& env, const Superblock& superblock, const std::string& store, KvStoreOptions::Mode mode,
    BucketPosition position = BucketPosition::kForget);

// Like OpenStoreMetadata, for a store with a superblock: if there is no metadata, it was lost, and
// the result is kCorruption.
Result<std::unique_ptr<KvStore>> OpenExistingMetadata(
    Env& env, const Superblock& superblock, const std::string& store, KvStoreOptions::Mode mode,
    BucketPosition position = BucketPosition::kForget);

}  // namespace siltfs
