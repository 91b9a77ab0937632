// Snapshots of an open store: states of the whole file system under names, which never change.
//
// Thread-safety: every call from any thread. Ownership: belongs to the FileSystem
// (FileSystem::snapshots). Errors: as stated; changes return kReadOnly if the store is read-only.
// Durability: changes are durable on return.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/file_system.h"
#include "store/base/result.h"

namespace siltfs {

// The directory with the snapshots, in the root directory, and its inode number.
inline constexpr std::string_view kSnapshotDirectoryName = ".snapshots";
inline constexpr InodeNumber kSnapshotDirectory = uint64_t{1} << 63;

struct SnapshotInfo {
  uint64_t number = 0;  // later snapshots have greater numbers
  std::string name;
  int64_t created = 0;  // nanoseconds since 1970
  uint64_t commit = 0;  // the number of the commit that made it
  uint64_t files = 0;   // inodes that are not directories
  uint64_t directories = 0;
  uint64_t logical_bytes = 0;  // of regular files: sizes without holes
  bool shown = false;          // by a file system that Show has returned, so it cannot be removed
};

class Snapshots {
 public:
  virtual ~Snapshots() = default;

  // All snapshots, in the order in which they were made.
  virtual std::vector<SnapshotInfo> List() const = 0;
  // kNotFound if there is no snapshot of this name.
  virtual Result<SnapshotInfo> Find(std::string_view name) const = 0;
  // Makes a snapshot, which includes all operations that ended before the call. Its cost does not
  // depend on the number of files. kInvalidArgument for a name that no directory entry can have,
  // kAlreadyExists if the name is taken.
  virtual Result<SnapshotInfo> Create(std::string_view name) = 0;
  // Errors: those of Find and Create.
  virtual Status Rename(std::string_view name, std::string_view new_name) = 0;
  // Removes the snapshot. The name is free on return. The metadata that only this snapshot needs is
  // removed in the background, and garbage collection frees its content later. Errors: those of
  // Find; kInUse while a file system that Show has returned exists.
  virtual Status Remove(std::string_view name) = 0;
  // Waits until the metadata of all removed snapshots is removed. Returns the failure of the last
  // attempt, kInterrupted if the store is being closed.
  virtual Status AwaitRemovals() = 0;
  // Returns a file system that shows this snapshot alone, as FileSystemOptions::snapshot does. It
  // borrows the open store: destroy it before the store is closed. Closing it does nothing. Errors:
  // those of Find; kStale if the snapshot is being removed.
  virtual Result<std::unique_ptr<FileSystem>> Show(std::string_view name) = 0;
};

}  // namespace siltfs
