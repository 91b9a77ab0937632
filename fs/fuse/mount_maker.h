// Makes a FUSE mount that another process will serve (FuseBinding::Adopt).
//
// Thread-safety: from any thread. Errors: kIoError with the cause if the kernel or fusermount3
// refuses.
#pragma once

#include <cstdint>

#include "fs/fuse/fuse_binding.h"
#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

struct MadeMount {
  // The connection to the kernel. When its last copy is closed, programs that use the mount get
  // ENOTCONN; the mount itself stays until it is unmounted.
  Descriptor connection;
  uint64_t device = 0;  // of the mount, as DeviceOf in fs/fuse/writeback.h; 0 if unknown
};

// Mounts with these options. Requests wait until a process serves the mount. As for
// FuseBinding::Mount, the kernel checks the rights of the caller's user.
Result<MadeMount> MakeMount(const FuseBindingOptions& options);

}  // namespace siltfs
