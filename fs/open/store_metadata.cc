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
                                                   KvStoreOptions::Mode mode) {
  return OpenKvStore(env, superblock.metadata_engine, MetadataOptionsOf(store, mode));
}

Result<std::unique_ptr<KvStore>> OpenExistingMetadata(Env& env, const Superblock& superblock,
                                                      const std::string& store,
                                                      KvStoreOptions::Mode mode) {
  auto opened = OpenStoreMetadata(env, superblock, store, mode);
  if (!opened.status().Is(StatusCode::kNotFound)) return opened;
  return Status(StatusCode::kCorruption, "the store's metadata is missing").At(MetadataPath(store));
}

}  // namespace siltfs
