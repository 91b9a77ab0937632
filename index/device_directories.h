// Subdirectories of an index's directory, "device-0", "device-1" and so on, for engines that spread
// an index over several devices. An engine makes missing ones. An administrator may replace one by
// a mount point or by a link to a directory on another device while the index is not open. So the
// subdirectories themselves are never removed, and files of others in them are left alone.
//
// Functions only, safe to call from any thread.
#pragma once

#include <string>
#include <string_view>

#include "store/env/env.h"

namespace siltfs {

inline constexpr unsigned kMostDeviceDirectories = 8;

// number < kMostDeviceDirectories.
std::string DeviceDirectoryName(unsigned number);
bool IsDeviceDirectoryName(std::string_view name);

// Removes the files of an index from one of these subdirectories, durably. A missing one, also a
// link that leads to no directory, is left as it is.
Status EmptyDeviceDirectory(Env& env, const std::string& path);

}  // namespace siltfs
