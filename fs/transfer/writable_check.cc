#include "fs/transfer/writable_check.h"

#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/result.h"

namespace siltfs {

Status CheckWritable(FileSystem& file_system) {
  SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, file_system.maintenance().GetStats());
  if (!stats.read_only) return Status::Ok();
  return {StatusCode::kReadOnly,
          stats.read_only_cause.empty() ? "is mounted read-only" : stats.read_only_cause};
}

}  // namespace siltfs
