// The SnapshotTransfers of ModelFileSystem. A stream has two messages, each written by one call:
// the first one refers to the sent state, which both file systems then share, and the last one
// marks the end. The sent snapshot must exist until the stream was received.
//
// Thread-safety: every call from any thread. Errors: those of SnapshotTransfers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/snapshot_transfers.h"
#include "store/base/thread_annotations.h"
#include "tests/crash/model_snapshots.h"

namespace siltfs::testing {

class ModelTransfers final : public SnapshotTransfers {
 public:
  // `snapshots` must outlive it.
  explicit ModelTransfers(ModelSnapshots& snapshots) : snapshots_(snapshots) {}

  Result<SendOutcome> Send(const SendRequest& request, ByteSink& out,
                           const std::function<Status()>& check) override;
  Result<ReceiveOutcome> Receive(const ReceiveRequest& request, ByteSource& in,
                                 const std::function<Status()>& check) override;
  std::vector<UnfinishedReceive> Unfinished() const override;
  Status Abandon(std::string_view name) override;

 private:
  ModelSnapshots& snapshots_;
  mutable Mutex mutex_;
  std::vector<UnfinishedReceive> unfinished_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::testing
