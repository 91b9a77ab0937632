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
// About the smallest size that its mkfs accepts.
uint64_t DiskBytesFor(LowerKind kind);
// The unit of writes that the file system expects a device to write atomically, without a journal:
// its superblock. Only btrfs has one that is larger than a sector and not covered by a log.
uint64_t TearBytesFor(LowerKind kind);

// A loop device over a file. Not thread-safe.
class LoopDevice {
 public:
  // Throws Failure. If this process is killed, the device goes with its last user.
  explicit LoopDevice(const std::string& file);
  ~LoopDevice();
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor device_;
};

// The lower file system failed, for reasons other than siltfs.
class LowerFailure : public std::exception {
 public:
  explicit LowerFailure(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  const std::string what_;
};

// A mount with default options, for the lifetime of the object. Not thread-safe.
class LowerMount {
 public:
  // Throws LowerFailure. Borrows nothing.
  LowerMount(LowerKind kind, const std::string& device, std::string directory);
  ~LowerMount();
  LowerMount(const LowerMount&) = delete;
  LowerMount& operator=(const LowerMount&) = delete;

  // Throws Failure if it stays busy.
  void Unmount();
  // Writes back everything, with a flush at the end.
  void Sync() const;

 private:
  const std::string directory_;
  bool mounted_ = false;
};

// Throws Failure. `scratch` is for the messages of mkfs.
void MakeLower(LowerKind kind, const std::string& device, const std::string& scratch);

// The places of the files below `path` on the device, as far as they are allocated. Not for btrfs,
// which does not report places on the device.
std::vector<std::pair<uint64_t, uint64_t>> ExtentsOf(const std::string& path);

}  // namespace siltfs::blocktest
