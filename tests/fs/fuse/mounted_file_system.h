// Mounts a FileSystem with the real kernel, for the lifetime of this object. Needs root and
// /dev/fuse; without them a test fails.
//
// The test program moves to its own mount namespace before the first mount, so it never leaves a
// mount behind.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "fs/fuse/fuse_binding.h"
#include "store/env/env.h"

namespace siltfs::testing {

// The descriptors that the threads of the mount see.
enum class Descriptors : uint8_t {
  // A copy of the descriptors that are open at the mount. If the test program is killed while it
  // has files open on the mount, the copy of /dev/fuse is closed with the server's thread. So no
  // thread waits for a reply.
  kCopied,
  // The descriptors of the process. A file system needs them if it opens files on threads of its
  // own. With a copy, the number of such a descriptor would be another file on the server's
  // threads.
  kShared,
};

class MountedFileSystem {
 public:
  explicit MountedFileSystem(FileSystem& file_system, MountOptions options = {},
                             Descriptors descriptors = Descriptors::kCopied);
  ~MountedFileSystem();
  MountedFileSystem(const MountedFileSystem&) = delete;
  MountedFileSystem& operator=(const MountedFileSystem&) = delete;

  const std::string& path() const { return mountpoint_; }
  std::string operator/(const std::string& name) const { return mountpoint_ + "/" + name; }

  // Unmounts like umount(8): the kernel writes all data back. Returns the result of Serve, after
  // the last request was answered.
  Status Unmount();
  // How requests arrive. Call it after the first call on the mount.
  Transport CurrentTransport() const { return binding_.load()->CurrentTransport(); }
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
  const Descriptors descriptors_;
  std::string mountpoint_;
  std::unique_ptr<Env> env_;
  std::atomic<FuseBinding*> binding_ = nullptr;  // while the mount is served
  Status outcome_;  // result of Serve; valid after the thread has ended
  std::thread server_;
};

// Makes all later mounts of this process private to it.
void EnterPrivateMountNamespace();

}  // namespace siltfs::testing
