#include "store/env/posix_paths.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <utility>

namespace siltfs {
namespace {

// openat2(2), for which glibc has no function.
int OpenAsSaid(const char* path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  if ((flags & O_CREAT) != 0) how.mode = mode;
  how.resolve = RESOLVE_NO_SYMLINKS;
  return static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

bool HasOpenat2() { return Descriptor(OpenAsSaid("/", O_PATH | O_CLOEXEC, 0)).valid(); }

}  // namespace

PosixPaths::PosixPaths(SymbolicLinks links)
    : refuses_links_(links == SymbolicLinks::kRefuse),
      sees_whole_path_(refuses_links_ && HasOpenat2()) {}

Descriptor PosixPaths::Open(const std::string& path, int flags, mode_t mode) const {
  flags |= O_CLOEXEC;
  if (refuses_links_ && !sees_whole_path_) flags |= O_NOFOLLOW;
  return Descriptor(RetryInterrupted([&] {
    return sees_whole_path_ ? OpenAsSaid(path.c_str(), flags, mode)
                            : open(path.c_str(), flags, mode);
  }));
}

PosixPaths::Name::Name(const PosixPaths& paths, const std::string& path) : name_(path) {
  const size_t slash = path.rfind('/');
  if (!paths.refuses_links_ || slash == std::string::npos || slash == 0) {
    directory_ = AT_FDCWD;
    return;
  }
  parent_ = paths.Open(path.substr(0, slash), O_PATH | O_DIRECTORY);
  directory_ = parent_.get();
  name_ = path.substr(slash + 1);
}

}  // namespace siltfs
