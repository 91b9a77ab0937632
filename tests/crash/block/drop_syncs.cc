// A library for LD_PRELOAD that makes the siltfs daemon leave out syncs: they return 0 and do
// nothing. SILTFS_DROP_SYNCS names the files:
//
//   segments        files below a directory `segments`
//   index           files below a directory `index`
//   metadata        RocksDB's logs
//   directories     all directories of the store
//   mount-directories  directories on the mount: the daemon answers an fsync request without a sync
//
// Test runs with this library show that siltfs-blocktest detects a siltfs with missing syncs.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

std::string_view Dropped() {
  static const char* const what = std::getenv("SILTFS_DROP_SYNCS");
  return what == nullptr ? std::string_view() : what;
}

bool IsDropped(int file) {
  struct stat there {};
  if (Dropped().empty() || fstat(file, &there) != 0) return false;
  if (S_ISDIR(there.st_mode)) return Dropped() == "directories";
  if (!S_ISREG(there.st_mode)) return false;
  std::array<char, 64> link{};
  std::array<char, 4096> name{};
  snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link.data(), name.data(), name.size());
  const std::string_view path(name.data(), length < 0 ? 0 : static_cast<size_t>(length));
  if (Dropped() == "segments") return path.find("/segments/") != path.npos;
  if (Dropped() == "index") return path.find("/index/") != path.npos;
  return Dropped() == "metadata" && path.find("/meta") != path.npos && path.ends_with(".log");
}

void AnswerAtOnce(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  fuse_reply_err(request, 0);
}

fuse_lowlevel_ops WithoutSyncOfDirectories(const fuse_lowlevel_ops* operations, size_t size) {
  fuse_lowlevel_ops changed{};
  std::memcpy(&changed, operations, std::min(size, sizeof(changed)));
  if (Dropped() == "mount-directories") changed.fsyncdir = AnswerAtOnce;
  return changed;
}

}  // namespace

extern "C" {

int fsync(int file) {
  static const auto next = Next<int (*)(int)>("fsync");
  return IsDropped(file) ? 0 : next(file);
}

int fdatasync(int file) {
  static const auto next = Next<int (*)(int)>("fdatasync");
  return IsDropped(file) ? 0 : next(file);
}

int sync_file_range(int file, off64_t offset, off64_t size, unsigned int flags) {
  static const auto next = Next<int (*)(int, off64_t, off64_t, unsigned int)>("sync_file_range");
  return IsDropped(file) ? 0 : next(file, offset, size, flags);
}

// Since libfuse 3.17, fuse_session_new is a macro.
#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 17)
fuse_session* fuse_session_new(fuse_args* arguments, const fuse_lowlevel_ops* operations,
                               size_t size, void* user) {
  static const auto next = Next<decltype(&fuse_session_new)>("fuse_session_new");
  const fuse_lowlevel_ops changed = WithoutSyncOfDirectories(operations, size);
  return next(arguments, &changed, sizeof(changed), user);
}
#else
fuse_session* fuse_session_new_versioned(fuse_args* arguments, const fuse_lowlevel_ops* operations,
                                         size_t size, libfuse_version* version, void* user) {
  static const auto next =
      Next<decltype(&fuse_session_new_versioned)>("fuse_session_new_versioned");
  const fuse_lowlevel_ops changed = WithoutSyncOfDirectories(operations, size);
  return next(arguments, &changed, sizeof(changed), version, user);
}
#endif

}  // extern "C"
