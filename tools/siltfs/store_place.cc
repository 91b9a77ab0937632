#include "tools/siltfs/store_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "fs/fuse/fuse_binding.h"
#include "store/env/mount_table.h"
#include "store/env/mountpoint.h"
#include "store/env/process.h"

namespace siltfs {
namespace {

using control::DaemonAddress;

bool IsStore(const Mount& mount) {
  return mount.type == fmt::format("fuse.{}", FuseBinding::kSubtype);
}

DaemonAddress ToAddress(const Mount& mount) {
  return {.store = mount.source,
          .mountpoint = mount.mount_point,
          .device = mount.device,
          .owner = NumberOption(mount.file_system_options, "user_id")};
}

// Returns the topmost mount on exactly this directory.
const Mount* MountOn(const std::vector<Mount>& mounts, const std::string& path) {
  const auto found = std::find_if(mounts.rbegin(), mounts.rend(),
                                  [&](const Mount& mount) { return mount.mount_point == path; });
  return found == mounts.rend() ? nullptr : &*found;
}

// Returns the mount that contains `path`, an absolute path without symbolic links.
const Mount* MountAround(const std::vector<Mount>& mounts, std::string path) {
  while (true) {
    if (const Mount* mount = MountOn(mounts, path.empty() ? "/" : path)) return mount;
    if (path.empty()) return nullptr;
    path.resize(path.rfind('/'));
  }
}

// Returns the absolute path, with symbolic links resolved in all but its last part. The last part
// is not accessed.
Result<std::string> PathOfName(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return AbsolutePath(path);
  const std::string trimmed = path.substr(0, end + 1);
  const size_t slash = trimmed.rfind('/');
  const std::string name = slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
  if (name == "." || name == "..") return AbsolutePath(path);
  SILTFS_ASSIGN_OR_RETURN(
      const std::string parent,
      AbsolutePath(slash == std::string::npos ? "." : trimmed.substr(0, slash + 1)));
  return parent == "/" ? "/" + name : parent + "/" + name;
}

// Returns the siltfs mount that contains `path`, if its daemon does not answer. A system call on a
// path in such a mount would not return, so only the path's text is compared with the mount table.
Result<std::optional<DaemonAddress>> SilentMountAround(const std::string& path) {
  const std::optional<std::string> name = AbsoluteName(path);
  if (!name) return std::optional<DaemonAddress>();
  SILTFS_ASSIGN_OR_RETURN(const std::vector<Mount> mounts, ReadMountTable());
  const Mount* mount = MountAround(mounts, *name == "/" ? "" : *name);
  if (mount == nullptr || !IsStore(*mount)) return std::optional<DaemonAddress>();
  DaemonAddress address = ToAddress(*mount);
  if (control::Identify(address).ok()) return std::optional<DaemonAddress>();
  return std::optional<DaemonAddress>(std::move(address));
}

}  // namespace

Result<std::optional<DaemonAddress>> FindMount(const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(const std::vector<Mount> mounts, ReadMountTable());
  SILTFS_ASSIGN_OR_RETURN(std::string mountpoint, PathOfName(path));
  const Mount* mount = MountOn(mounts, mountpoint);
  if (mount == nullptr) {  // `path` may be a symbolic link to the mountpoint
    SILTFS_ASSIGN_OR_RETURN(mountpoint, AbsolutePath(path));
    mount = MountOn(mounts, mountpoint);
  }
  if (mount == nullptr || !IsStore(*mount)) return std::optional<DaemonAddress>();
  return std::optional<DaemonAddress>(ToAddress(*mount));
}

Result<std::string> StoreAt(const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(const DaemonAddress address, AddressAt(path));
  return address.store;
}

Result<DaemonAddress> AddressAt(const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(auto mounted, FindMount(path));
  if (mounted) return *std::move(mounted);
  SILTFS_ASSIGN_OR_RETURN(const std::string store, AbsolutePath(path));
  return AddressOfStore(store);
}

Result<DaemonAddress> AddressAround(const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(auto silent, SilentMountAround(path));
  if (silent) return *std::move(silent);
  SILTFS_ASSIGN_OR_RETURN(auto mounted, FindMount(path));
  if (mounted) return *std::move(mounted);
  SILTFS_ASSIGN_OR_RETURN(const std::string place, AbsolutePath(path));
  SILTFS_ASSIGN_OR_RETURN(const std::vector<Mount> mounts, ReadMountTable());
  const Mount* mount = MountAround(mounts, place == "/" ? "" : place);
  if (mount != nullptr && IsStore(*mount)) return ToAddress(*mount);
  return AddressOfStore(place);
}

Result<DaemonAddress> LiveMountOf(const DaemonAddress& address) {
  SILTFS_ASSIGN_OR_RETURN(const control::Identity daemon, control::Identify(address));
  SILTFS_ASSIGN_OR_RETURN(const std::vector<Mount> mounts, ReadMountTable());
  for (const control::ServedMount& served :
       daemon.mounts.value_or(std::vector<control::ServedMount>())) {
    if (!served.snapshot.empty()) continue;
    const Mount* mount = MountOn(mounts, served.mountpoint);
    if (mount != nullptr && IsStore(*mount) && mount->device == served.device)
      return ToAddress(*mount);
  }
  return address;
}

std::optional<control::ServedMount> ServedMountOf(const DaemonAddress& address,
                                                  const control::Identity& daemon) {
  if (!daemon.mounts || address.device.empty()) return std::nullopt;
  const auto found = std::find_if(
      daemon.mounts->rbegin(), daemon.mounts->rend(),
      [&](const control::ServedMount& mount) { return mount.device == address.device; });
  return found == daemon.mounts->rend() ? std::nullopt
                                        : std::optional<control::ServedMount>(*found);
}

Result<std::vector<StoreMount>> FindStoreMounts() {
  SILTFS_ASSIGN_OR_RETURN(const std::vector<Mount> mounts, ReadMountTable());
  std::vector<StoreMount> found;
  for (const Mount& mount : mounts) {
    if (!IsStore(mount)) continue;
    const bool read_only =
        HasOption(mount.mount_options, "ro") || HasOption(mount.file_system_options, "ro");
    found.push_back({ToAddress(mount), read_only});
  }
  return found;
}

std::map<std::string, DaemonAddress> StoresOf(const std::vector<StoreMount>& mounts) {
  const auto is_own = [](const DaemonAddress& address) {
    return address.owner && (*address.owner == 0 || *address.owner == CurrentUserId());
  };
  std::map<std::string, DaemonAddress> stores;
  for (const StoreMount& mount : mounts) {
    const auto [place, is_first] = stores.try_emplace(mount.address.store, mount.address);
    if (!is_first && (is_own(mount.address) || !is_own(place->second)))
      place->second = mount.address;
  }
  return stores;
}

DaemonAddress AddressOfStore(const std::string& store) {
  const auto mounts = FindStoreMounts();
  if (!mounts.ok()) return {.store = store};
  const auto stores = StoresOf(*mounts);
  const auto found = stores.find(store);
  return found == stores.end() ? DaemonAddress{.store = store} : found->second;
}

}  // namespace siltfs
