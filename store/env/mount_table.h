// The kernel's list of mounts. Reading the list does not access the mounted file systems, so it
// works even if one of them does not answer.
//
// Thread-safety: any function from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"

namespace siltfs {

struct Mount {
  std::string device;  // "0:53", the same for all mounts of one file system
  std::string mount_point;
  std::string type;
  std::string source;
  std::string mount_options;  // "rw,noatime": options of the mount, not of the file system
  std::string
      file_system_options;  // "rw,user_id=0,...": options of the file system, not of the mount
};

// Parses the text of /proc/self/mountinfo and decodes its octal escapes; malformed lines are
// skipped.
std::vector<Mount> ParseMountTable(std::string_view text);
// The mounts visible to this process. If a mount point occurs several times, the last mount counts.
Result<std::vector<Mount>> ReadMountTable();

// Whether this process sees the mount with this device ("0:53") on exactly this directory, and no
// other mount covers it.
bool IsMountedOn(const std::string& mount_point, const std::string& device);

// Whether the list of options has this one.
bool HasOption(std::string_view options, std::string_view name);
// The value of the option NAME=VALUE in a list of options; empty if it is missing or not a number.
std::optional<uint32_t> NumberOption(std::string_view options, std::string_view name);

struct ForeignMount {
  int64_t pid = 0;  // a process that sees the mount
  std::string mount_point;
};

// Finds a mount of this file system in the mount namespace of another process. Searches only
// namespaces that this process may read.
std::optional<ForeignMount> FindForeignMount(const std::string& device);

}  // namespace siltfs
