// Finds the process that holds a lock of Env::LockFile, if the system reports it. For messages.
//
// Thread-safety: from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace siltfs {

struct FileLockEntry {
  int64_t pid = 0;  // 0 or less: a process in another namespace
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
};

// Returns the held flock(2) locks from the text of /proc/locks. Skips waiting requests and
// malformed lines.
std::vector<FileLockEntry> ParseFileLocks(std::string_view text);

// The process that holds this file's lock. Empty if unknown: the lock is free by now, its holder is
// in another process namespace, or the file cannot be examined.
std::optional<int64_t> FindLockHolder(const std::string& path);

}  // namespace siltfs
