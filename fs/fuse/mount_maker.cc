#include "fs/fuse/mount_maker.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "fs/fuse/session_mount.h"
#include "fs/fuse/writeback.h"
#include "store/env/mountpoint.h"

// Of LeakSanitizer; null in other builds.
extern "C" void __lsan_disable() __attribute__((weak));
extern "C" void __lsan_enable() __attribute__((weak));

namespace siltfs {
namespace {

// While it exists, LeakSanitizer ignores what this thread allocates: libfuse frees the text of the
// mountpoint only when it unmounts, and this mount stays.
class UnwatchedLeaks {
 public:
  UnwatchedLeaks() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  ~UnwatchedLeaks() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
  UnwatchedLeaks(const UnwatchedLeaks&) = delete;
  UnwatchedLeaks& operator=(const UnwatchedLeaks&) = delete;
};

}  // namespace

Result<MadeMount> MakeMount(const FuseBindingOptions& options) {
  const fuse_lowlevel_ops none = {};  // this process answers no request
  const UnwatchedLeaks unwatched;
  SILTFS_ASSIGN_OR_RETURN(const fuse::SessionPointer session,
                          fuse::MountSession(options, none, nullptr));
  // The session closes its own descriptor.
  Descriptor connection(fcntl(fuse_session_fd(session.get()), F_DUPFD_CLOEXEC, 0));
  if (!connection.valid()) {
    const int error = errno;
    UnmountFuse(options.mountpoint).IgnoreError("the first failure is reported");
    return Status(StatusCode::kIoError,
                  std::string("no descriptor is free: ") + std::strerror(error))
        .At(options.mountpoint);
  }
  return MadeMount{std::move(connection), fuse::DeviceOf(options.mountpoint)};
}

}  // namespace siltfs
