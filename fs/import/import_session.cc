#include "fs/import/import_session.h"

#include <memory>

#include "fs/import/import_lane.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/transfer/caller_rights.h"
#include "fs/transfer/lane_session.h"

namespace siltfs {

Result<nlohmann::json> ServeImport(FileSystem& file_system, KernelCache& cache, LocalStream& stream,
                                   const std::function<bool()>& stopped) {
  SILTFS_ASSIGN_OR_RETURN(const uint32_t uid, stream.PeerUid());
  SILTFS_ASSIGN_OR_RETURN(std::vector<uint32_t> groups, stream.PeerGroups());
  const CallerRights rights(file_system, uid, std::move(groups));
  OpenedDirectories opened;
  const ImportContext context{.file_system = file_system,
                              .cache = cache,
                              .rights = rights,
                              .opened = opened,
                              .stopped = stopped};
  SILTFS_ASSIGN_OR_RETURN(const FileSystemStats before, file_system.maintenance().GetStats());
  SILTFS_RETURN_IF_ERROR(transfer::RunLanes(
      stream, [&context] { return std::make_unique<ImportLane>(context); }, stopped));
  SILTFS_ASSIGN_OR_RETURN(const FileSystemStats after, file_system.maintenance().GetStats());
  return nlohmann::json{{"bytes_new", after.added_bytes - before.added_bytes}};
}

}  // namespace siltfs
