// The StoreMaintenance of MemoryFileSystem: there is nothing to recompress, collect or verify.
//
// Thread-safety: every call from any thread.
#pragma once

#include <functional>
#include <utility>

#include "fs/interface/activity.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"

namespace siltfs::testing {

class MemoryMaintenance : public StoreMaintenance {
 public:
  explicit MemoryMaintenance(std::function<FileSystemStats()> stats) : stats_(std::move(stats)) {}

  Result<FileSystemStats> GetStats() override { return stats_(); }
  StoreHealth GetHealth() override { return {}; }
  StoreActivityReport GetActivity() override { return {}; }
  Result<RecompressionReport> Recompress() override { return RecompressionReport(); }
  void EndWaitingForSegmentRoom() override {}
  void StopRecompression() override {}
  void InterruptRecompression() override {}
  Result<GarbageReport> CollectGarbage(bool dry_run) override {
    return GarbageReport{.dry_run = dry_run};
  }
  void StopCollecting() override {}
  void InterruptCollecting() override {}
  Result<ScrubReport> Scrub(ScrubMode /*mode*/) override {
    ScrubReport report;
    report.complete = true;
    return report;
  }
  void InterruptScrub() override {}
  void StopScrubbing() override {}
  Result<StoreSurvey> Survey(const SurveyProgressFunction& on_progress) override {
    if (on_progress) SILTFS_RETURN_IF_ERROR(on_progress({.name = "files"}));
    return StoreSurvey();
  }

 private:
  const std::function<FileSystemStats()> stats_;
};

}  // namespace siltfs::testing
