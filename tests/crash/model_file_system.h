// The file system that gives the expected results of sequences: a MemoryFileSystem with snapshots,
// which it sends and receives, too.
//
// Thread-safety: every call from any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/crash/model_quotas.h"
#include "tests/crash/model_snapshots.h"
#include "tests/crash/model_transfers.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {

class ModelFileSystem final : public MemoryFileSystem {
 public:
  // `describe`: what is compared of a snapshot.
  ModelFileSystem(Clock clock, std::function<std::string(FileSystem&)> describe)
      : MemoryFileSystem(std::move(clock)),
        snapshots_(mutex_, inodes_),
        transfers_(snapshots_),
        quotas_(mutex_, inodes_) {
    snapshots_.describe = std::move(describe);
    entries_.find_snapshot = [this](uint64_t number) { return snapshots_.InodesOf(number); };
  }

  // Also finds the inodes of snapshots. Clones need them; no other call takes them.
  Result<Attributes> Lookup(InodeNumber parent, std::string_view name) override;
  ModelSnapshots& snapshots() override { return snapshots_; }
  ModelTransfers& transfers() override { return transfers_; }
  DirectoryQuotas* quotas() override { return &quotas_; }

 private:
  ModelSnapshots snapshots_;
  ModelTransfers transfers_;
  ModelQuotas quotas_;
};

}  // namespace siltfs::testing
