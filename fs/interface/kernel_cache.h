// What the kernel caches of a mounted file system. A change that the kernel did not request must be
// told to it.
//
// Thread-safety: every call from any thread that does not answer requests of the kernel. The caller
// holds no lock of the core, because the kernel may wait for answers to its requests. Errors: none;
// a failure is logged. After the unmount, the calls do nothing.
#pragma once

#include <string>

#include "fs/interface/file_system.h"

namespace siltfs {

class KernelCache {
 public:
  virtual ~KernelCache() = default;
  // Makes the kernel look up the name again when it is next used.
  virtual void ForgetName(InodeNumber parent, const std::string& name) = 0;
  // Makes the kernel ask again for the inode's attributes and, with `listing`, for the names in
  // this directory or the content of this file.
  virtual void ForgetInode(InodeNumber inode, bool listing) = 0;
};

}  // namespace siltfs
