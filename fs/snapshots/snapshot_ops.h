// Makes, renames and removes snapshots of an open store; removes their metadata in the background.
//
// Thread-safety, errors and durability: as fs/interface/snapshots.h. Ownership: borrows the parts
// of the store, which must outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/inodes/store_context.h"
#include "fs/interface/snapshots.h"
#include "fs/jobs/background_job.h"
#include "fs/snapshots/snapshot_trees.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SnapshotOps final : public Snapshots {
 public:
  // `live` is the file system that this object belongs to. It is used by Show alone.
  SnapshotOps(const StoreContext& store, SnapshotTrees& trees, FileSystem& live);

  std::vector<SnapshotInfo> List() const override;
  Result<SnapshotInfo> Find(std::string_view name) const override;
  Result<SnapshotInfo> Create(std::string_view name) override;
  Status Rename(std::string_view name, std::string_view new_name) override;
  Status Remove(std::string_view name) override;
  Status AwaitRemovals() override;
  Result<std::unique_ptr<FileSystem>> Show(std::string_view name) override;

  // Starts the thread that removes the metadata of removed snapshots, also of those that an earlier
  // mount has removed. Does nothing if the store is read-only.
  void Start();
  // Ends the thread, after at most one batch. The next mount continues.
  void Stop() { job_.Stop(); }

 private:
  // Removes the metadata of all removed snapshots.
  Status ReleaseRemoved() SILTFS_REQUIRES(job_.run_mutex());
  Status Release(uint64_t number) SILTFS_REQUIRES(job_.run_mutex());
  bool HasRemoved() const;
  SnapshotPort& Port() const { return *store_.metadata().snapshots(); }

  const StoreContext& store_;
  SnapshotTrees& trees_;
  FileSystem& live_;
  Mutex remove_mutex_;  // held while a snapshot is closed and marked as removed
  BackgroundJob job_;
};

}  // namespace siltfs
