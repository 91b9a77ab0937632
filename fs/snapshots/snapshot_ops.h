// Makes, renames and removes snapshots of an open store; removes their metadata in the background.
//
// Thread-safety, errors and durability: as fs/interface/snapshots.h. Ownership: borrows the parts
// of the store, which must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/inodes/inode_lifetimes.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/operation_gate.h"
#include "fs/inodes/rolled_back_inodes.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/snapshots.h"
#include "fs/jobs/background_job.h"
#include "fs/meta/id_allocator.h"
#include "fs/snapshots/rollback.h"
#include "fs/snapshots/snapshot_measurer.h"
#include "fs/snapshots/snapshot_trees.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SnapshotOps final : public Snapshots {
 public:
  // `ids` is null if the store is read-only. `live` is the file system that this object belongs to.
  // It is used by Show alone.
  SnapshotOps(const StoreContext& store, const IdAllocator* ids, OperationGate& gate,
              RolledBackInodes& rolled_back, InodeStore& inodes, InodeLifetimes& lifetimes,
              SnapshotTrees& trees, FileSystem& live);

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
  Status AwaitRemovals() override;
  void InterruptRemovals() override { job_.Interrupt(); }
  WorkProgress progress() const override { return progress_.Now(); }
  Result<std::unique_ptr<FileSystem>> Show(std::string_view name) override;

  // Completes a rollback that a crash has interrupted. Call it before any operation. If the store
  // is read-only, kUnsupported after such a crash.
  Status CompleteRollback();
  // Starts the thread that removes the metadata of removed snapshots, also of those that an earlier
  // mount has removed. Does nothing if the store is read-only.
  void Start();
  // Ends the thread, after at most one batch. The next mount continues. Ends measurements, too.
  void Stop() {
    measurer_.Stop();
    job_.Stop();
  }

 private:
  // Whether the store may have another snapshot.
  Status CheckRoomForSnapshot() const;
  // kAlreadyExists if a snapshot has this name.
  Status CheckFree(std::string_view name) const;
  // The committed records, which include all changes that ended before the call.
  Result<std::shared_ptr<const KvSnapshot>> CommittedFiles() const;
  SnapshotInfo Describe(const NumberedSnapshot& snapshot) const;
  // Removes the metadata of all removed snapshots.
  Status ReleaseRemoved() SILTFS_REQUIRES(job_.run_mutex());
  Status Release(uint64_t number) SILTFS_REQUIRES(job_.run_mutex());
  // Makes the head of each lineage what its newest snapshot shows.
  Status RestoreHeads() SILTFS_REQUIRES(job_.run_mutex());
  bool HasRemoved() const;
  // If this is the only snapshot of its lineage, whose head is removed with it, the size of its
  // files; else 0.
  uint64_t BytesOfLastOfLineage(uint64_t number) const;
  SnapshotPort& Port() const { return *store_.metadata().snapshots(); }
  siltfs::LineagePort& LineagePort() const { return *store_.metadata().lineages(); }

  const StoreContext& store_;
  const IdAllocator* const ids_;
  OperationGate& gate_;
  RolledBackInodes& rolled_back_;
  InodeLifetimes& lifetimes_;
  SnapshotTrees& trees_;
  FileSystem& live_;
  Mutex remove_mutex_;  // held while a snapshot is closed and marked as removed
  BackgroundJob job_;
  ProgressMeter progress_;
  SnapshotMeasurer measurer_;
  Rollback rollback_;
};

}  // namespace siltfs
