// What is mounted, as the kernel lists it. Reading the list touches none of the file systems, so it
// works whatever state they are in.
//
// Thread-safety: all of it from any thread.
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
  std::string
      file_system_options;  // "rw,user_id=0,...": those of the file system, not of the mount
};

// The text of /proc/self/mountinfo, its octal escapes decoded; lines that make no sense are left
// out.
std::vector<Mount> ParseMountTable(std::string_view text);
// What is mounted where this process sees it; of several mounts on one place the last one counts.
Result<std::vector<Mount>> ReadMountTable();

// The value of NAME=VALUE in a list of options, if it is a number.
std::optional<uint32_t> NumberOption(std::string_view options, std::string_view name);

struct ForeignMount {
  int64_t pid = 0;  // of a process that sees it
  std::string mount_point;
};

// A mount of this file system in the mount namespace of another process, if there is one that this
// process may look into.
std::optional<ForeignMount> FindForeignMount(const std::string& device);

}  // namespace siltfs
