#include "fs/open/store_stats.h"

#include "fs/interface/file_system.h"
#include "fs/interface/store_maintenance.h"

namespace siltfs {

Result<FileSystemStats> ReadStoreStats(Env& env, const std::string& store, SegmentStore* segments) {
  FileSystemOptions options;
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
