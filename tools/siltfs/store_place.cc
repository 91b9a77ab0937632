#include "tools/siltfs/store_place.h"

#include <fmt/format.h>

#include "fs/fuse/fuse_binding.h"
#include "store/env/daemon.h"
#include "store/env/mountpoint.h"

namespace siltfs {

Result<std::optional<MountedStore>> FindMount(const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(const std::string mountpoint, AbsolutePath(path));
  SILTFS_ASSIGN_OR_RETURN(const std::vector<Mount> mounts, ReadMountTable());
  const std::string type = fmt::format("fuse.{}", FuseBinding::kSubtype);
  for (auto mount = mounts.rbegin(); mount != mounts.rend(); ++mount) {
    if (mount->mount_point != mountpoint) continue;
    if (mount->type != type) break;
    return std::optional<MountedStore>({.store = mount->source, .mountpoint = mountpoint});
  }
  return std::optional<MountedStore>();
}

Result<std::string> StoreAt(const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(const auto mounted, FindMount(path));
  return mounted ? mounted->store : AbsolutePath(path);
}

}  // namespace siltfs
