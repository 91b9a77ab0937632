// What the threads of a daemon's control socket know of its mounts.
//
// Thread-safety: every call from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "fs/attach/attached_mounts.h"
#include "fs/fuse/fuse_binding.h"
#include "fs/interface/file_system.h"
#include "fs/interface/kernel_cache.h"
#include "store/base/thread_annotations.h"
#include "tools/siltfs/daemon.h"

namespace siltfs {

// The mount that the daemon has made, for the threads of the control socket that wait for the
// kernel's writeback or change the file system.
class MountInUse : public KernelCache {
 public:
  // `binding` may be null; otherwise it must live until the next call of Set. Set waits until no
  // thread is in AwaitWriteback.
  void Set(FuseBinding* binding) {
    const WriterLock lock(mutex_);
    binding_ = binding;
    ending_ = false;
  }
  // The binding will be stopped: no thread uses it any more, until the next call of Set. Waits
  // until no thread does.
  void End() {
    const WriterLock lock(mutex_);
    if (binding_ != nullptr) ending_ = true;
    binding_ = nullptr;
  }
  // OK if there is no mount: its end has written everything back. kAborted after End.
  Status AwaitWriteback() {
    const ReaderLock lock(mutex_);
    if (ending_) return {StatusCode::kAborted, "the mount has ended"};
    return binding_ == nullptr ? Status::Ok() : binding_->AwaitWriteback();
  }
  void ForgetName(InodeNumber parent, const std::string& name) override {
    const ReaderLock lock(mutex_);
    if (binding_ != nullptr) binding_->ForgetName(parent, name);
  }
  void ForgetInode(InodeNumber inode, bool listing) override {
    const ReaderLock lock(mutex_);
    if (binding_ != nullptr) binding_->ForgetInode(inode, listing);
  }

 private:
  SharedMutex mutex_;
  FuseBinding* binding_ SILTFS_GUARDED_BY(mutex_) = nullptr;
  bool ending_ SILTFS_GUARDED_BY(mutex_) = false;
};

// All mounts that the daemon serves: the one that it has made, and those that other processes have
// handed to it.
class MountState {
 public:
  // The arguments must outlive it.
  MountState(const DaemonOptions& options, FileSystem& file_system, AttachedMounts& attached)
      : options_(options), file_system_(file_system), attached_(attached) {}

  // `device` is that of the mount table; empty if it is unknown.
  void Mounted(const FuseBinding* binding, std::string device);
  // The mount that the daemon has made has ended. Call it before the binding is destroyed.
  void OwnEnded();
  // All mounts have ended.
  void Closing();

  // kStarting, kMounted or kClosing. Asks the binding, too, because a client may ask between the
  // unmount and the end of Serve. If this returns kClosing, no mount is added any more.
  std::string_view Name() const;
  // The first mount that is served.
  std::string Mountpoint() const;
  // As in the answer to "identity".
  nlohmann::json Mounts() const;
  // Of the mount that the daemon has made; empty while there is none.
  std::string_view TransportName() const;

  // The file system of the mount that the arguments of a session name (fs/control/protocol.h).
  struct Named {
    std::shared_ptr<FileSystem> file_system;
    bool attached = false;  // it shows a snapshot, for a mount that was handed over
  };
  Result<Named> Find(const nlohmann::json& arguments) const;

 private:
  bool OwnIsConnected() const SILTFS_REQUIRES(mutex_) {
    return binding_ != nullptr && binding_->Connected();
  }

  const DaemonOptions& options_;
  FileSystem& file_system_;
  AttachedMounts& attached_;

  mutable Mutex mutex_;
  const FuseBinding* binding_ SILTFS_GUARDED_BY(mutex_) = nullptr;
  std::string device_ SILTFS_GUARDED_BY(mutex_);
  bool own_ended_ SILTFS_GUARDED_BY(mutex_) = false;
  bool closing_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs
