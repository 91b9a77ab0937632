// The StoreMaintenance of FileSystemImpl, and its background work.
//
// Thread-safety: every call from any thread, except StartInBackground. Ownership: borrows the parts
// of the store, which must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "fs/chunks/chunk_parts.h"
#include "fs/content/file_content.h"
#include "fs/core/maintenance_jobs.h"
#include "fs/core/size_recorder.h"
#include "fs/core/store_surveyor.h"
#include "fs/deltas/near_duplicates.h"
#include "fs/guide/segment_guide.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_lifetimes.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/activity.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "index/chunk_index.h"

namespace siltfs {

class StoreMaintenanceImpl final : public StoreMaintenance {
 public:
  // `jobs` is null when read-only, `guide` if the store is used without one, and `near_duplicates`
  // if no deltas are made.
  StoreMaintenanceImpl(const StoreContext& store, std::string reserve_directory, ChunkIndex& index,
                       const SegmentGuide* guide, const NearDuplicates* near_duplicates,
                       const ChunkParts& parts, MaintenanceJobs* jobs, const FileContent& content,
                       ChangeApplier& changes, InodeLifetimes& lifetimes)
      : store_(store),
        reserve_directory_(std::move(reserve_directory)),
        index_(index),
        guide_(guide),
        near_duplicates_(near_duplicates),
        parts_(parts),
        jobs_(jobs),
        content_(content),
        changes_(changes),
        lifetimes_(lifetimes),
        surveyor_(store, index, parts),
        sizes_(store.env(), store.metadata(), store.options().store,
               [this] { return GetStats(); }) {}

  Result<FileSystemStats> GetStats() override;
  StoreHealth GetHealth() override;
  StoreActivityReport GetActivity() override;
  Result<RecompressionReport> Recompress() override;
  void EndWaitingForSegmentRoom() override { store_.chunks().EndWaitingForSegmentRoom(); }
  void StopRecompression() override;
  void InterruptRecompression() override;
  Result<GarbageReport> CollectGarbage(bool dry_run) override;
  void StopCollecting() override;
  void InterruptCollecting() override;
  Result<ScrubReport> Scrub(ScrubMode mode) override;
  void InterruptScrub() override;
  void StopScrubbing() override;
  Result<StoreSurvey> Survey(const SurveyProgressFunction& on_progress) override {
    return surveyor_.Survey(on_progress);
  }

  // Starts the background work that the options ask for.
  void StartInBackground();
  // Stops all jobs permanently. Call it while metadata still accepts changes.
  void Stop();
  // The record of the store's sizes with these statistics, to be written when the store is closed.
  // nullopt if there is nothing to write.
  std::optional<Mutation> LastSizes(const FileSystemStats& stats) const {
    return sizes_.Sample(stats);
  }

 private:
  // The failure that made the store read-only, or OK.
  Status Failure() const;
  // Waits until all full segments are sealed. Then makes a commit, even if nothing changed, so that
  // metadata records them as sealed.
  Status CommitSealed();
  // Enters sealed segments into the segment guide, and drops removed ones.
  void UpdateGuide();
  std::optional<DeltaStats> GetDeltaStats() const;
  // Finds and reports the files that use chunks known to be damaged.
  Status NameDamagedFiles(ScrubReport& report);

  const StoreContext& store_;
  const std::string reserve_directory_;
  ChunkIndex& index_;
  const SegmentGuide* const guide_;
  const NearDuplicates* const near_duplicates_;
  const ChunkParts& parts_;
  MaintenanceJobs* const jobs_;
  const FileContent& content_;
  ChangeApplier& changes_;
  InodeLifetimes& lifetimes_;
  // Calls of InterruptCollecting and InterruptRecompression.
  std::atomic<uint64_t> collecting_interruptions_{0};
  std::atomic<uint64_t> recompression_interruptions_{0};
  StoreSurveyor surveyor_;
  SizeRecorder sizes_;
};

}  // namespace siltfs
