#include "store/env/posix_paths.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <utility>

namespace siltfs {
namespace {

// openat2(2), which has no wrapper in glibc.
int OpenAsSaid(int directory, const char* path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  if ((flags & O_CREAT) != 0) how.mode = mode;
  how.resolve = RESOLVE_NO_SYMLINKS;
  return static_cast<int>(syscall(SYS_openat2, directory, path, &how, sizeof how));
}

bool HasOpenat2() { return Descriptor(OpenAsSaid(AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0)).valid(); }

Descriptor OpenAnchor(const std::string& path, bool refuses_links) {
  if (path.empty()) return {};
  const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (refuses_links ? O_NOFOLLOW : 0);
  return Descriptor(RetryInterrupted([&] { return open(path.c_str(), flags); }));
}

}  // namespace

PosixPaths::PosixPaths(SymbolicLinks links, const std::string& anchor)
    : refuses_links_(links == SymbolicLinks::kRefuse),
      sees_whole_path_(refuses_links_ && HasOpenat2()),
      anchor_(anchor),
      anchor_directory_(OpenAnchor(anchor, refuses_links_)) {}

PosixPaths::Place PosixPaths::Find(const std::string& path) const {
  if (anchored() && path.starts_with(anchor_)) {
    if (path.size() == anchor_.size()) return {anchor_directory_.get(), "."};
    if (path[anchor_.size()] == '/')
      return {anchor_directory_.get(), path.c_str() + anchor_.size() + 1};
  }
  return {AT_FDCWD, path.c_str()};
}

Descriptor PosixPaths::Open(const std::string& path, int flags, mode_t mode) const {
  flags |= O_CLOEXEC;
  if (refuses_links_ && !sees_whole_path_) flags |= O_NOFOLLOW;
  const Place place = Find(path);
  return Descriptor(RetryInterrupted([&] {
    return sees_whole_path_ ? OpenAsSaid(place.directory, place.path, flags, mode)
                            : openat(place.directory, place.path, flags, mode);
  }));
}

PosixPaths::Name::Name(const PosixPaths& paths, const std::string& path) : name_(path) {
  const size_t slash = path.rfind('/');
  const bool needs_parent = paths.refuses_links_ || paths.anchored();
  if (!needs_parent || slash == std::string::npos || slash == 0) {
    directory_ = AT_FDCWD;
    return;
  }
  parent_ = paths.Open(path.substr(0, slash), O_PATH | O_DIRECTORY);
  directory_ = parent_.get();
  name_ = path.substr(slash + 1);
}

}  // namespace siltfs
