// Finds the process that holds a lock of Env::LockFile, as far as the system reports it; for
// messages.
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

// The held flock(2) locks in the text of /proc/locks, without waiting requests; malformed lines are
// skipped.
std::vector<FileLockEntry> ParseFileLocks(std::string_view text);

// The process that holds this file's lock. Empty if unknown: the lock is free by now, its holder is
// in another process namespace, or the file cannot be examined.
std::optional<int64_t> FindLockHolder(const std::string& path);

}  // namespace siltfs
