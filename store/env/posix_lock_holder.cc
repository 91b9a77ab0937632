#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <sstream>

#include "store/env/lock_holder.h"

namespace siltfs {

std::vector<FileLockEntry> ParseFileLocks(std::string_view text) {
  std::vector<FileLockEntry> entries;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, kind, strictness, access;
    FileLockEntry entry;
    char colon = 0;
    char second_colon = 0;
    if (!(words >> number >> kind) || kind != "FLOCK") continue;
    words >> strictness >> access >> entry.pid;
    words >> std::hex >> entry.device_major >> colon >> entry.device_minor;
    words >> second_colon >> std::dec >> entry.inode;
    if (words && colon == ':' && second_colon == ':') entries.push_back(entry);
  }
  return entries;
}

std::optional<int64_t> FindLockHolder(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  std::ifstream file("/proc/locks");
  std::stringstream text;
  text << file.rdbuf();
  // Some file systems (btrfs) report another device for their files than /proc/locks does.
  std::optional<int64_t> of_another_device;
  unsigned others = 0;
  for (const FileLockEntry& entry : ParseFileLocks(text.str())) {
    if (entry.inode != info.st_ino || entry.pid <= 0) continue;
    if (entry.device_major == major(info.st_dev) && entry.device_minor == minor(info.st_dev)) {
      return entry.pid;
    }
    of_another_device = entry.pid;
    ++others;
  }
  // Only for a file on a device 0:N may stat and /proc/locks report different devices. For any
  // other file the loop would have found the lock.
  return major(info.st_dev) == 0 && others == 1 ? of_another_device : std::nullopt;
}

}  // namespace siltfs
