// The SnapshotTransfers of MemoryFileSystem, which has none.
//
// Thread-safety: every call from any thread.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "fs/interface/snapshot_transfers.h"

namespace siltfs::testing {

class MemoryTransfers : public SnapshotTransfers {
 public:
  Result<SendOutcome> Send(const SendRequest&, ByteSink&, const std::function<Status()>&) override {
    return Unsupported();
  }
  Result<ReceiveOutcome> Receive(const ReceiveRequest&, ByteSource&,
                                 const std::function<Status()>&) override {
    return Unsupported();
  }
  std::vector<UnfinishedReceive> Unfinished() const override { return {}; }
  Status Abandon(std::string_view) override { return Unsupported(); }

 private:
  static Status Unsupported() {
    return {StatusCode::kUnsupported, "a file system in memory sends and receives no snapshots"};
  }
};

}  // namespace siltfs::testing
