// The mounts that other processes have made and handed to this daemon. Each shows one snapshot,
// read-only, on threads of its own, and ends when it is unmounted. What it used is then freed.
//
// Thread-safety: every call from any thread, but AwaitEnd and the destructor from one. Ownership:
// owns the file systems that it gets; borrows the Env. Memory: for each mount two request threads
// and one that waits for them, 64 KiB of tables, and for each READ in progress at most
// kRequestBytes. There are at most kMost mounts. Durability: nothing is written.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <spdlog/logger.h>

#include "fs/fuse/fuse_binding.h"
#include "fs/interface/file_system.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

struct AttachedMount {
  std::string mountpoint;  // by the client's report; perhaps in another mount namespace
  uint64_t device = 0;     // see attach_message.h
  std::string snapshot;
};

struct AttachRequest {
  AttachedMount mount;
  std::shared_ptr<FileSystem> shown;
  Descriptor connection;
  bool no_xattrs = false;
  std::optional<uint32_t> max_read = std::nullopt;
  OwnerMapping owners = {};
};

struct AttachedMountsOptions {
  std::string store;
  std::shared_ptr<spdlog::logger> log;
  // Called on the thread of a mount with its device ("0:53"), if it is known, before the first
  // request and after the last one. May be empty.
  std::function<void(const std::string& device)> begun = {};
  std::function<void(const std::string& device)> ended = {};
  // Whether this process has the right to unmount. Without it, EndAll only ends the connections of
  // the mounts, and another process removes them.
  bool may_unmount = true;
};

class AttachedMounts {
 public:
  static constexpr size_t kMost = 16;
  static constexpr unsigned kThreads = 2;
  static constexpr uint32_t kRequestBytes = 256U << 10;
  // How long the kernel may take for its first request. It sends it when the mount is made.
  static constexpr std::chrono::seconds kReadyPatience{10};

  AttachedMounts(Env& env, AttachedMountsOptions options)
      : env_(env), options_(std::move(options)) {}
  ~AttachedMounts();
  AttachedMounts(const AttachedMounts&) = delete;
  AttachedMounts& operator=(const AttachedMounts&) = delete;

  // kInUse if there are kMost mounts already; kAborted after EndAll or AwaitEnd.
  Status CheckRoom() const SILTFS_EXCLUDES(mutex_);
  // Serves the mount. Returns OK when the kernel has accepted it. kInvalidArgument if the
  // descriptor is no /dev/fuse; kIoError if it has no mount, or if another process reads from it;
  // the errors of CheckRoom. After an error the connection is closed. `stopped` ends the wait.
  Status Add(AttachRequest request, const std::function<bool()>& stopped) SILTFS_EXCLUDES(mutex_);

  // The mounts that have not ended, in the order in which they were added. A mount has ended when
  // it is unmounted everywhere and what it used is freed.
  std::vector<AttachedMount> List() const SILTFS_EXCLUDES(mutex_);
  // The file system of the newest mount with this device ("0:53"). Null if there is none.
  std::shared_ptr<FileSystem> Find(const std::string& device) const SILTFS_EXCLUDES(mutex_);

  // If no mount is left, makes sure that none is added any more, and returns true.
  bool CloseIfEmpty() SILTFS_EXCLUDES(mutex_);
  // Waits until all mounts have ended. Then none can be added.
  void AwaitEnd() SILTFS_EXCLUDES(mutex_);
  // Unmounts all mounts, and adds no more. Programs that use a mount lose access to it, and a mount
  // in another mount namespace stays there without a daemon.
  void EndAll() SILTFS_EXCLUDES(mutex_);

 private:
  struct Served {
    AttachedMount mount;
    std::shared_ptr<FileSystem> shown;     // null once the mount is ending
    std::unique_ptr<FuseBinding> binding;  // as well
    bool adding = true;                    // Add waits for it
    bool ready = false;                    // the kernel has accepted the mount
    bool ended = false;
    Status outcome = {};  // set when it has ended
    std::thread thread;
  };
  using Place = std::list<Served>::iterator;

  Status CheckRoomLocked() const SILTFS_REQUIRES(mutex_);
  // Starts a thread that serves the mount.
  Result<Place> Start(AttachRequest request) SILTFS_EXCLUDES(mutex_);
  // Runs on the thread of the mount.
  void Serve(Served& served) SILTFS_EXCLUDES(mutex_);
  void Detach(const AttachedMount& mount);
  bool AnyServed() const SILTFS_REQUIRES(mutex_);
  // Removes the mounts that have ended.
  void Sweep() SILTFS_REQUIRES(mutex_);

  Env& env_;
  const AttachedMountsOptions options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::list<Served> mounts_ SILTFS_GUARDED_BY(mutex_);
  bool closed_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs
