// The snapshots of an open store, and the changes of their records.
//
// Thread-safety: as for plain values. Errors: kCorruption for malformed records; those of
// SnapshotPort, without a change.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/meta/metadata_store.h"
#include "fs/records/lineage.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {

// A snapshot that a group will make when it is committed.
struct WantedSnapshot {
  std::string name;
  int64_t created = 0;
  std::function<uint64_t()> inode_limit;  // SnapshotPort::CreateSnapshot
};

class SnapshotState {
 public:
  static Result<SnapshotState> Read(const KvSnapshot& metadata);

  const std::vector<NumberedSnapshot>& all() const { return all_; }
  // Keeps the versions of the live files that the snapshots need.
  const VersionKeeper& keeper() const { return keeper_; }
  const Lineages& lineages() const { return lineages_; }
  uint64_t next() const { return next_; }
  bool HasName(std::string_view name) const;

  // Each of these functions changes the state, and adds the same change of the records to
  // `mutations`.
  //
  // Adds a snapshot of the state that commit `commit` makes, with these counters. The inodes of
  // this state are below `inode_limit`.
  void Add(const WantedSnapshot& wanted, uint64_t commit, uint64_t inode_limit,
           const Counters& counters, std::vector<Mutation>& mutations);
  Status Rename(uint64_t number, std::string name, std::vector<Mutation>& mutations);
  Status BeginRemoval(uint64_t number, std::vector<Mutation>& mutations);
  Status EndRemoval(uint64_t number, std::vector<Mutation>& mutations);
  // kInUse if another snapshot is being restored.
  Status BeginRestore(uint64_t number, std::vector<Mutation>& mutations);
  Status EndRestore(uint64_t number, std::vector<Mutation>& mutations);

  // The functions of LineagePort.
  Result<LineageNumber> AddLineage(const LineageRecord& record, std::vector<Mutation>& mutations);
  void SetLineage(LineageNumber lineage, const std::optional<LineageRecord>& record,
                  std::vector<Mutation>& mutations);
  Result<NumberedSnapshot> AddReceived(SnapshotRecord record, std::vector<Mutation>& mutations);

 private:
  // The snapshot, which must not be one that is being removed unless `removing`.
  Result<NumberedSnapshot*> Find(uint64_t number, bool removing);
  void MakeKeeper();
  // Adds a snapshot with the next number.
  void Append(SnapshotRecord record, std::vector<Mutation>& mutations);

  std::vector<NumberedSnapshot> all_;  // ascending
  uint64_t next_ = 1;
  VersionKeeper keeper_;
  Lineages lineages_;
};

}  // namespace siltfs
