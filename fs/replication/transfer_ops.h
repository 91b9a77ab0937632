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
#include "fs/snapshots/snapshot_trees.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

class TransferOps final : public SnapshotTransfers {
 public:
  TransferOps(const StoreContext& store, SnapshotTrees& trees, const StoreUuid& uuid)
      : store_(store), trees_(trees), uuid_(uuid) {}

  Result<SendOutcome> Send(const SendRequest& request, ByteSink& out,
                           const std::function<Status()>& check) override;
  Result<ReceiveOutcome> Receive(const ReceiveRequest& request, ByteSource& in,
                                 const std::function<Status()>& check) override;
  std::vector<UnfinishedReceive> Unfinished() const override;
  Status Abandon(std::string_view name) override;

 private:
  [[maybe_unused]] const StoreContext& store_;
  [[maybe_unused]] SnapshotTrees& trees_;
  [[maybe_unused]] const StoreUuid uuid_;
};

}  // namespace siltfs
