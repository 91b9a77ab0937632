// The disk file system below the store: ext4, xfs or btrfs on a loop device over the FUSE disk.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "store/env/posix_descriptor.h"

namespace siltfs::blocktest {

enum class LowerKind : uint8_t { kExt4, kXfs, kBtrfs };

std::string NameOf(LowerKind kind);
// Returns about the smallest disk size that the file system's mkfs accepts.
uint64_t DiskBytesFor(LowerKind kind);
// Returns how many bytes the device must write atomically for this file system. The file system
// relies on this for writes that no journal protects, which are writes of the superblock. Only
// btrfs has a superblock that is larger than a sector and not covered by a log.
uint64_t TearBytesFor(LowerKind kind);

// A loop device over a file. Not thread-safe.
class LoopDevice {
 public:
  // Throws Failure. If this process is killed, the loop device disappears with its last user.
  explicit LoopDevice(const std::string& file);
  ~LoopDevice();
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor device_;
};

// The lower file system failed, and siltfs is not the cause.
class LowerFailure : public std::exception {
 public:
  explicit LowerFailure(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  const std::string what_;
};

// A mount with default options; the destructor unmounts it. Not thread-safe.
class LowerMount {
 public:
  // Throws LowerFailure. Borrows nothing.
  LowerMount(LowerKind kind, const std::string& device, std::string directory);
  ~LowerMount();
  LowerMount(const LowerMount&) = delete;
  LowerMount& operator=(const LowerMount&) = delete;

  // Throws Failure if the mount stays busy.
  void Unmount();
  // Writes all data back, and ends with a flush.
  void Sync() const;

 private:
  const std::string directory_;
  bool mounted_ = false;
};

// Makes a file system on `device`. Throws Failure. `scratch` gets the messages of mkfs.
void MakeLower(LowerKind kind, const std::string& device, const std::string& scratch);

// Returns the ranges of the device that hold the files below `path`, as far as they are allocated.
// Not for btrfs, which does not report places on the device.
std::vector<std::pair<uint64_t, uint64_t>> ExtentsOf(const std::string& path);

}  // namespace siltfs::blocktest
