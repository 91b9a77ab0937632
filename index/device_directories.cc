#include "index/device_directories.h"

#include <fmt/format.h>

#include "store/env/files.h"

namespace siltfs {

std::string DeviceDirectoryName(unsigned number) { return fmt::format("device-{}", number); }

bool IsDeviceDirectoryName(std::string_view name) {
  for (unsigned number = 0; number < kMostDeviceDirectories; ++number) {
    if (name == DeviceDirectoryName(number)) return true;
  }
  return false;
}

Status EmptyDeviceDirectory(Env& env, const std::string& path) {
  const auto entries = env.ListDirectory(path);
  if (entries.status().Is(StatusCode::kNotFound)) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    // Engines keep nothing but page files there (index/flash/store_files.h).
    const bool is_ours = entry.type == FileType::kRegular && entry.name.ends_with(".pages");
    if (is_ours) SILTFS_RETURN_IF_ERROR(env.RemoveFile(JoinPath(path, entry.name)));
  }
  return env.SyncDirectory(path);
}

}  // namespace siltfs
