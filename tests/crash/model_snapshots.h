// The Snapshots of ModelFileSystem: each has a copy of all inodes.
//
// Thread-safety: every call from any thread. Errors: those of Snapshots.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/interface/snapshots.h"
#include "store/base/thread_annotations.h"
#include "tests/support/memory_inodes.h"

namespace siltfs::testing {

// What a snapshot shows. A snapshot that was sent and the received one share it, so its address
// identifies them as the id in a stream does.
struct ModelState {
  explicit ModelState(const MemoryInodes& present) : inodes(present) {}

  const MemoryInodes inodes;
};

struct ModelSnapshot {
  uint64_t number = 0;
  uint64_t lineage = 0;  // 0: of the live files
  std::shared_ptr<const ModelState> state;
  std::string text = {};  // what `describe` returned; empty: it was not called yet
};

class ModelSnapshots final : public Snapshots {
 public:
  // The arguments must outlive it; `mutex` guards `inodes`.
  ModelSnapshots(Mutex& mutex, MemoryInodes& inodes) : mutex_(mutex), inodes_(inodes) {}

  // Set it before the first TextOf. It describes the state that a file system shows.
  std::function<std::string(FileSystem&)> describe;

  // The description of a snapshot that exists.
  std::string TextOf(std::string_view name);
  // The inodes of a snapshot; null if there is none of this number.
  std::shared_ptr<const MemoryInodes> InodesOf(uint64_t number) const;

  std::optional<ModelSnapshot> FindModel(std::string_view name) const;
  // The received snapshot of this state.
  std::optional<ModelSnapshot> FindReceived(const ModelState* state) const;
  // Whether no snapshot of the lineage is newer.
  bool IsNewest(const ModelSnapshot& snapshot) const;
  // Adds a snapshot to a lineage; to a new lineage without one. Its name must be free.
  void AddReceived(std::string_view name, std::shared_ptr<const ModelState> state,
                   std::optional<uint64_t> lineage);

  std::vector<SnapshotInfo> List() const override;
  Result<SnapshotInfo> Find(std::string_view name) const override;
  Result<std::vector<SnapshotSpace>> Measure(const std::function<Status()>& check) override;
  Result<SnapshotInfo> Create(std::string_view name) override;
  Status Rename(std::string_view name, std::string_view new_name) override;
  Status Remove(std::string_view name) override;
  Status Diff(std::string_view from, std::optional<std::string_view> to,
              const std::function<Status()>& check,
              const std::function<Status(const PathChange&)>& visit) override;
  Result<SnapshotInfo> RollBack(std::string_view name, std::string_view kept,
                                KernelCache* cache) override;
  Status AwaitRemovals() override { return Status::Ok(); }
  void InterruptRemovals() override {}
  WorkProgress progress() const override { return {}; }
  Result<std::unique_ptr<FileSystem>> Show(std::string_view name) override;

 private:
  SnapshotInfo Add(std::string_view name, uint64_t lineage, std::shared_ptr<const ModelState> state)
      SILTFS_REQUIRES(mutex_);

  Mutex& mutex_;
  MemoryInodes& inodes_ SILTFS_GUARDED_BY(mutex_);
  std::map<std::string, ModelSnapshot, std::less<>> snapshots_ SILTFS_GUARDED_BY(mutex_);
  uint64_t next_ SILTFS_GUARDED_BY(mutex_) = 1;
  uint64_t next_lineage_ SILTFS_GUARDED_BY(mutex_) = 1;
};

}  // namespace siltfs::testing
