// Which process holds a lock of Env::LockFile, as far as the machine tells: for messages.
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
  int64_t pid = 0;  // 0 or less: a process of another namespace
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
};

// The locks of flock(2) in the text of /proc/locks, without those that are waited for; lines that
// make no sense are left out.
std::vector<FileLockEntry> ParseFileLocks(std::string_view text);

// The process that has this file locked. Empty if none is known: the lock is free by now, its
// holder is in another process namespace, or the file cannot be looked at.
std::optional<int64_t> FindLockHolder(const std::string& path);

}  // namespace siltfs
