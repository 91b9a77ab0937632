// Snapshots of an open store: states of the whole file system under names, which never change.
//
// Thread-safety: every call from any thread. Ownership: belongs to the FileSystem
// (FileSystem::snapshots). Errors: as stated; changes return kReadOnly if the store is read-only.
// Durability: changes are durable on return.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/file_system.h"
#include "fs/interface/path_change.h"
#include "store/base/progress_meter.h"
#include "store/base/result.h"

namespace siltfs {

class KernelCache;

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
  // The UUID of the store that has made it; empty if it is this one.
  std::string received_from = {};
  bool shown = false;  // by a file system that Show has returned, so it cannot be removed
};

// A snapshot and the space that it takes: uncompressed bytes of distinct chunks, recipe nodes
// included (docs/glossary.md, "new bytes" and "freed bytes").
struct SnapshotSpace {
  SnapshotInfo snapshot;
  uint64_t new_bytes = 0;    // of chunks that no older snapshot refers to
  uint64_t freed_bytes = 0;  // of chunks that only this snapshot refers to
};

// OK if a snapshot may have this name; otherwise kInvalidArgument.
Status CheckSnapshotName(std::string_view name);

class Snapshots {
 public:
  virtual ~Snapshots() = default;

  // All snapshots, in the order in which they were made.
  virtual std::vector<SnapshotInfo> List() const = 0;
  // kNotFound if there is no snapshot of this name.
  virtual Result<SnapshotInfo> Find(std::string_view name) const = 0;
  // All snapshots with the space that they take. Reads all metadata of files and snapshots, on the
  // caller's thread, and calls `check` at intervals; it may be empty. Errors: that of `check`;
  // kInterrupted if the store is being closed; kNoSpace if references do not fit into memory and
  // into the disk; kCorruption if metadata or a recipe node cannot be read.
  virtual Result<std::vector<SnapshotSpace>> Measure(const std::function<Status()>& check) = 0;
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
  // Visits the paths that differ between the snapshot `from` and the snapshot `to`, or the present
  // state without `to`. No data are read, and the time is proportional to the changes
  // (fs/diff/tree_diff.h). `from` may be the newer one. The snapshots cannot be removed meanwhile.
  // Errors: those of Find, `check` and `visit`. `check` is called now and then.
  virtual Status Diff(std::string_view from, std::optional<std::string_view> to,
                      const std::function<Status()>& check,
                      const std::function<Status(const PathChange&)>& visit) = 0;
  // Changes all files to what they are in the snapshot `name`, and keeps the present state as the
  // snapshot `kept`, which is returned. The time is proportional to the changes since the snapshot.
  // Calls that use the live files wait meanwhile. If the store is mounted, the kernel must be told
  // what has changed through `cache`, which may be null otherwise. The store then has no snapshot
  // `kept` without the rollback, also after a crash: the next opening for writing completes the
  // rollback, and until then the store cannot be read otherwise. kInUse if a file stays open, or
  // if a call such as a clone does not end soon. Other errors: those of Find and Create. After an
  // error of the disk in the middle, all calls fail until the store is opened again.
  virtual Result<SnapshotInfo> RollBack(std::string_view name, std::string_view kept,
                                        KernelCache* cache = nullptr) = 0;
  // Waits until the metadata of all removed snapshots is removed. Returns the failure of the last
  // attempt, kInterrupted if the store is being closed.
  virtual Status AwaitRemovals() = 0;
  // Makes the AwaitRemovals calls that are running return kInterrupted soon. The removal goes on in
  // the background, or with the next opening of the store.
  virtual void InterruptRemovals() = 0;
  // How far the call that measures, rolls back or awaits removals is; if there are several, one of
  // them.
  virtual WorkProgress progress() const = 0;
  // Returns a file system that shows this snapshot alone, as FileSystemOptions::snapshot does. It
  // borrows the open store: destroy it before the store is closed. Closing it does nothing. Errors:
  // those of Find; kStale if the snapshot is being removed.
  virtual Result<std::unique_ptr<FileSystem>> Show(std::string_view name) = 0;
};

}  // namespace siltfs
