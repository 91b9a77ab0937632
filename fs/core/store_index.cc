#include "fs/core/store_index.h"

#include "fs/core/store_layout.h"
#include "index/open_index.h"
#include "store/superblock/superblock.h"

namespace siltfs {

Result<StoreIndex> OpenStoreIndexReadOnly(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(SuperblockState state,
                          ReadSuperblock(env, store, StoreAccess::kReadOnly));
  StoreIndex opened;
  SILTFS_ASSIGN_OR_RETURN(opened.lock, env.LockFile(LockPath(store)));
  // Read again: whoever held the lock may have written it meanwhile.
  SILTFS_ASSIGN_OR_RETURN(state, ReadSuperblock(env, store, StoreAccess::kReadOnly));
  IndexOptions options;
  options.engine = static_cast<IndexEngine>(state.superblock.index_engine);
  options.directory = IndexPath(store);
  options.read_only = true;
  auto index = OpenIndex(env, options);
  if (!index.ok() && index.status().Is(StatusCode::kNotFound)) {
    return Status(StatusCode::kCorruption, "the store's chunk index is missing")
        .At(options.directory);
  }
  if (!index.ok()) return std::move(index).status();
  opened.index = std::move(*index);
  return opened;
}

}  // namespace siltfs
