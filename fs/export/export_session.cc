#include "fs/export/export_session.h"

#include <memory>
#include <utility>
#include <vector>

#include "fs/export/export_lane.h"
#include "fs/transfer/caller_rights.h"
#include "fs/transfer/lane_session.h"

namespace siltfs {

Result<nlohmann::json> ServeExport(FileSystem& file_system, LocalStream& stream,
                                   const std::function<bool()>& stopped) {
  SILTFS_ASSIGN_OR_RETURN(const uint32_t uid, stream.PeerUid());
  SILTFS_ASSIGN_OR_RETURN(std::vector<uint32_t> groups, stream.PeerGroups());
  const CallerRights rights(file_system, uid, std::move(groups));
  SILTFS_RETURN_IF_ERROR(transfer::RunLanes(
      stream, [&] { return std::make_unique<ExportLane>(file_system, rights, stopped); }, stopped));
  return nlohmann::json::object();
}

}  // namespace siltfs
