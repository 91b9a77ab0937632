#include "fs/open/store_metadata.h"

#include "fs/meta/open_kv_store.h"
#include "fs/open/store_layout.h"
#include "fs/records/schema.h"
#include "store/superblock/superblock.h"

namespace siltfs {

KvStoreOptions MetadataOptionsOf(const std::string& store, KvStoreOptions::Mode mode) {
  return {.path = MetadataPath(store),
          .mode = mode,
          .ledger_path = LedgerPath(store),
          .loaded_bytes = FirstBytesOfInodes()};
}

Result<std::unique_ptr<KvStore>> OpenStoreMetadata(Env& env, const Superblock& superblock,
                                                   const std::string& store,
                                                   KvStoreOptions::Mode mode,
                                                   BucketPosition position) {
  auto opened = OpenKvStore(env, superblock.metadata_engine, MetadataOptionsOf(store, mode));
  const bool keep = position == BucketPosition::kKeep || mode != KvStoreOptions::Mode::kOpen;
  if (keep || !opened.ok()) return opened;
  SILTFS_ASSIGN_OR_RETURN(const auto there, (*opened)->Get(kBucketPositionKey));
  if (there) {
    SILTFS_RETURN_IF_ERROR((*opened)->Write({{std::string(kBucketPositionKey), std::nullopt}}));
  }
  return opened;
}

Result<std::unique_ptr<KvStore>> OpenExistingMetadata(Env& env, const Superblock& superblock,
                                                      const std::string& store,
                                                      KvStoreOptions::Mode mode,
                                                      BucketPosition position) {
  auto opened = OpenStoreMetadata(env, superblock, store, mode, position);
  if (!opened.status().Is(StatusCode::kNotFound)) return opened;
  return Status(StatusCode::kCorruption, "the store's metadata is missing").At(MetadataPath(store));
}

}  // namespace siltfs
