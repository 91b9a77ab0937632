// Sends and receives snapshots of an open store.
//
// Thread-safety, errors and durability: as fs/interface/snapshot_transfers.h. Ownership: borrows
// the parts of the store, which must outlive it.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "fs/inodes/store_context.h"
#include "fs/interface/snapshot_transfers.h"
#include "fs/records/snapshot_id.h"
#include "fs/records/snapshot_record.h"
#include "fs/snapshots/snapshot_trees.h"
#include "store/base/thread_annotations.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

class TransferOps final : public SnapshotTransfers {
 public:
  TransferOps(const StoreContext& store, SnapshotTrees& trees, Snapshots& snapshots,
              const StoreUuid& uuid)
      : store_(store), trees_(trees), snapshots_(snapshots), uuid_(uuid) {}

  Result<SendOutcome> Send(const SendRequest& request, ByteSink& out,
                           const std::function<Status()>& check) override;
  Result<ReceiveOutcome> Receive(const ReceiveRequest& request, ByteSource& in,
                                 const std::function<Status()>& check) override;
  std::vector<UnfinishedReceive> Unfinished() const override;
  Status Abandon(std::string_view name) override;

 private:
  // A snapshot that is not being removed.
  Result<NumberedSnapshot> FindByName(std::string_view name) const;
  SnapshotId IdOf(const NumberedSnapshot& snapshot) const;
  // Sets receiving_; kInUse if a stream is being received.
  Status BeginReceive() SILTFS_EXCLUDES(mutex_);

  const StoreContext& store_;
  SnapshotTrees& trees_;
  Snapshots& snapshots_;
  const StoreUuid uuid_;
  mutable Mutex mutex_;
  bool receiving_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs
