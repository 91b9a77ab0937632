// Measures the space of paths of an open store, and finds duplicates there.
//
// What does not fit into memory is sorted in the store's directory `sort-paths`. If the store is
// read-only, or its disk is full, it is sorted in the directory for temporary files.
//
// Thread-safety, errors and memory: as fs/interface/space_usage.h. Ownership: borrows the parts of
// the store, which must outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "fs/inodes/operation_gate.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/space_usage.h"
#include "fs/kv/kv_store.h"
#include "fs/space/path_usage.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class UsageOps final : public UsageMeasures {
 public:
  UsageOps(const StoreContext& store, OperationGate& gate) : store_(store), gate_(gate) {}

  Result<UsageReport> Measure(const UsageRequest& request) override;
  Result<DuplicateReport> FindDuplicates(const DuplicateRequest& request) override;

  // Ends the running call, and makes all later ones fail.
  void Stop() SILTFS_EXCLUDES(mutex_);

 private:
  // One call at a time has its turn.
  class Turn {
   public:
    explicit Turn(UsageOps& ops) : ops_(ops) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    UsageOps& ops_;
  };
  // Waits until no call has a turn.
  Status AwaitTurn(const UsageScope& scope) SILTFS_EXCLUDES(mutex_);
  // Calls `work` with the committed state and a directory for sorting, and once more with another
  // directory if the first one has no room.
  template <typename Report>
  Result<Report> Run(const UsageScope& scope,
                     const std::function<Result<Report>(const KvSnapshot& metadata,
                                                        const UsageOptions& options)>& work);
  // Not in the middle of a rollback.
  Result<std::shared_ptr<const KvSnapshot>> CommittedFiles() const;
  UsageOptions OptionsFor(const std::string& directory, const UsageScope& scope) const;
  Status Check(const UsageScope& scope) const;

  const StoreContext& store_;
  OperationGate& gate_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  CondVar changed_;
  bool busy_ SILTFS_GUARDED_BY(mutex_) = false;  // a call has its turn
};

}  // namespace siltfs
