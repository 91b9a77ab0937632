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
// About the smallest that its mkfs accepts.
uint64_t DiskBytesFor(LowerKind kind);
// Multiples of which the file system expects a device to write whole, but for which it makes no
// journal: its superblock. Only btrfs has one that is larger than a sector and no log's matter.
uint64_t TearBytesFor(LowerKind kind);

// A loop device over a file. Not thread-safe.
class LoopDevice {
 public:
  // Throws Failure. The device goes with its last user if this process dies.
  explicit LoopDevice(const std::string& file);
  ~LoopDevice();
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor device_;
};

// The file system was not what it must be, for reasons that are not siltfs's.
class LowerFailure : public std::exception {
 public:
  explicit LowerFailure(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  const std::string what_;
};

// Mounted while it lives, with default options. Not thread-safe.
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

// Throws Failure. Messages go by way of `scratch`.
void MakeLower(LowerKind kind, const std::string& device, const std::string& scratch);

// Where the bytes of the files below `path` lie on the device, as far as they have a place. Not for
// btrfs, which tells no places of the device.
std::vector<std::pair<uint64_t, uint64_t>> ExtentsOf(const std::string& path);

}  // namespace siltfs::blocktest
