#include "fs/open/store_stats.h"

#include <memory>
#include <utility>

#include "fs/interface/file_system.h"
#include "fs/interface/store_maintenance.h"
#include "fs/kv/kv_store.h"

namespace siltfs {

Result<FileSystemStats> ReadStoreStats(
    Env& env, const std::string& store, SegmentStore* segments,
    std::function<Result<std::unique_ptr<KvStore>>(std::unique_ptr<KvStore>)> metadata_layer) {
  FileSystemOptions options;
  options.metadata_layer = std::move(metadata_layer);
  options.segments = segments;
  options.store = store;
  options.read_only = true;
  options.keep_guide = true;
  SILTFS_ASSIGN_OR_RETURN(auto file_system, FileSystem::Open(env, options));
  SILTFS_ASSIGN_OR_RETURN(FileSystemStats stats, file_system->maintenance().GetStats());
  stats.read_only = false;  // only this function has opened the store read-only
  SILTFS_RETURN_IF_ERROR(file_system->Close());
  return stats;
}

}  // namespace siltfs
