// Makes libfuse's sessions, and mounts them.
//
// Thread-safety: any function from any thread. Errors: kIoError with libfuse's explanation, and the
// mountpoint as path. Ownership: a session owns its descriptor of /dev/fuse, and does not unmount
// when it is destroyed.
#pragma once

#include <memory>

#include "fs/fuse/fuse_api.h"
#include "fs/fuse/fuse_binding.h"
#include "store/base/result.h"

namespace siltfs::fuse {

struct SessionDestroyer {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};
using SessionPointer = std::unique_ptr<fuse_session, SessionDestroyer>;

// A session without a mount.
Result<SessionPointer> NewSession(const FuseBindingOptions& options,
                                  const fuse_lowlevel_ops& operations, void* user_data);
// A session that is mounted on `options.mountpoint`.
Result<SessionPointer> MountSession(const FuseBindingOptions& options,
                                    const fuse_lowlevel_ops& operations, void* user_data);

}  // namespace siltfs::fuse
