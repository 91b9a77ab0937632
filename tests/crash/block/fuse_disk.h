// A FUSE file system with a single file, `disk`, which holds the bytes of a Device. The test puts a
// loop device on this file. The loop device turns a flush of the block layer into an fsync of the
// file.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tests/crash/block/device.h"

struct fuse_session;

namespace siltfs::blocktest {

// This file system's thread must never wait for a file system above it. Not thread-safe.
class FuseDisk {
 public:
  // Mounts on `directory`, which must exist and be empty. Throws Failure.
  FuseDisk(std::string directory, uint64_t size);
  ~FuseDisk();
  FuseDisk(const FuseDisk&) = delete;
  FuseDisk& operator=(const FuseDisk&) = delete;

  std::string path() const { return directory_ + "/disk"; }
  // From now on requests go to `device`, which is borrowed. If it is null, requests fail.
  void Serve(Device* device);

  // Calls `call` with the device. Only the thread that answers requests calls this function.
  template <typename Call>
  int With(Call call) {
    const std::lock_guard lock(mutex_);
    return device_ == nullptr ? EIO : call(*device_);
  }
  uint64_t size() const { return size_; }

 private:
  const std::string directory_;
  const uint64_t size_;
  std::mutex mutex_;
  Device* device_ = nullptr;  // guarded by mutex_
  fuse_session* session_ = nullptr;
  std::thread thread_;
};

}  // namespace siltfs::blocktest
