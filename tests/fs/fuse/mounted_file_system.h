// A FileSystem, really mounted while this lives: root and /dev/fuse are needed, and a test without
// them fails.
//
// The test program moves to a mount namespace of its own before the first mount. So whatever
// becomes of it, no mount is left behind for anyone else.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "fs/fuse/fuse_binding.h"
#include "store/env/env.h"

namespace siltfs::testing {

class MountedFileSystem {
 public:
  explicit MountedFileSystem(FileSystem& file_system, MountOptions options = {});
  ~MountedFileSystem();
  MountedFileSystem(const MountedFileSystem&) = delete;
  MountedFileSystem& operator=(const MountedFileSystem&) = delete;

  const std::string& path() const { return mountpoint_; }
  std::string operator/(const std::string& name) const { return mountpoint_ + "/" + name; }

  // As umount(8) does: everything is written back. Returns when the last request was answered; what
  // Serve returned.
  Status Unmount();
  // Makes the kernel let go of all names and inodes that nobody uses.
  void DropCaches() const;
  // The line about this mount in /proc/self/mounts; empty if there is none.
  std::string MountLine() const;

  // What the binding shows as source of the mount.
  static constexpr const char* kSource = "/somewhere/a store, with comma";

 private:
  // On a thread of its own: mounts, says so, and answers requests until the end.
  void Serve(FuseBindingOptions options, std::promise<Status> mounted);

  FileSystem& file_system_;
  std::string mountpoint_;
  std::unique_ptr<Env> env_;
  Status outcome_;  // of Serve, once the thread has ended
  std::thread server_;
};

// From now on mounts of this process are its own.
void EnterPrivateMountNamespace();

}  // namespace siltfs::testing
