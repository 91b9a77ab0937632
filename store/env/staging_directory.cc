#include "store/env/staging_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "store/env/posix_tree.h"

namespace siltfs {
namespace {

constexpr std::string_view kPrefix = ".siltfs-export-";

Descriptor OpenStaging(const Descriptor& parent, const std::string& name) {
  return Descriptor(
      openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// False if another process holds the lock, or if the file system has no locks.
bool Lock(const Descriptor& directory) {
  return RetryInterrupted([&] { return flock(directory.get(), LOCK_EX | LOCK_NB); }) == 0;
}

// Whether the name still leads to this directory.
bool IsAt(const Descriptor& directory, const Descriptor& parent, const std::string& name) {
  struct stat own = {};
  struct stat named = {};
  return fstat(directory.get(), &own) == 0 &&
         fstatat(parent.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

std::vector<std::string> NamesIn(const Descriptor& directory) {
  std::vector<std::string> names;
  const int fd = openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd), closedir);
  if (!stream) {
    close(fd);
    return names;
  }
  while (const dirent* entry = readdir(stream.get())) names.emplace_back(entry->d_name);
  return names;
}

bool IsNumber(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

// Whether this user made it, for the names of StagingDirectory.
bool IsOwn(const Descriptor& directory) {
  struct stat info = {};
  return fstat(directory.get(), &info) == 0 && info.st_uid == geteuid() &&
         (info.st_mode & 0077) == 0;
}

}  // namespace

Result<std::unique_ptr<StagingDirectory>> StagingDirectory::Make(const Descriptor& parent) {
  static std::atomic<uint64_t> next{0};
  static const uint64_t random = [] {
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits)) bits = 0;
    return bits;
  }();
  for (int attempts = 1000; attempts > 0; --attempts) {
    const std::string name = fmt::format("{}{}-{:x}-{}", kPrefix, getpid(), random, next++);
    if (mkdirat(parent.get(), name.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return TreeError("make a temporary directory", ".");
    }
    Descriptor fd = OpenStaging(parent, name);
    if (!fd.valid()) {
      if (errno == ENOENT) continue;  // another run has taken it for an abandoned one
      const Status failed = TreeError("open a temporary directory", ".");
      unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR);
      return failed;
    }
    // Until it is locked, another run may lock and remove it. If the file system has no locks, the
    // other run gets none either, and removes nothing.
    if (!Lock(fd) && errno == EWOULDBLOCK) continue;
    if (!IsAt(fd, parent, name)) continue;
    return std::unique_ptr<StagingDirectory>(new StagingDirectory(parent, name, std::move(fd)));
  }
  return Status(StatusCode::kIoError, "cannot make a temporary directory: its names are taken");
}

StagingDirectory::~StagingDirectory() {
  // The lock is held until the directory is gone.
  unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR);
}

void StagingDirectory::RemoveAbandoned(const Descriptor& parent) {
  for (const std::string& name : NamesIn(parent)) {
    if (!name.starts_with(kPrefix)) continue;
    const Descriptor fd = OpenStaging(parent, name);
    if (!fd.valid() || !IsOwn(fd) || !Lock(fd)) continue;
    for (const std::string& below : NamesIn(fd)) {
      if (IsNumber(below)) unlinkat(fd.get(), below.c_str(), 0);
    }
    unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace siltfs
