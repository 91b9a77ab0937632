// Mounts a FileSystem with the real kernel, for the lifetime of this object. Needs root and
// /dev/fuse; without them a test fails.
//
// The test program moves to its own mount namespace before the first mount, so it never leaves a
// mount behind.
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

  // Unmounts like umount(8): everything is written back. Returns the result of Serve, after the
  // last request was answered.
  Status Unmount();
  // Makes the kernel drop all unused names and inodes.
  void DropCaches() const;
  // The line about this mount in /proc/self/mounts; empty if there is none.
  std::string MountLine() const;

  // The mount's source as shown by the binding.
  static constexpr const char* kSource = "/somewhere/a store, with comma";

 private:
  // Runs on its own thread: mounts, reports that, and answers requests until the unmount.
  void Serve(FuseBindingOptions options, std::promise<Status> mounted);

  FileSystem& file_system_;
  std::string mountpoint_;
  std::unique_ptr<Env> env_;
  Status outcome_;  // result of Serve; valid after the thread has ended
  std::thread server_;
};

// Makes all later mounts of this process private to it.
void EnterPrivateMountNamespace();

}  // namespace siltfs::testing
