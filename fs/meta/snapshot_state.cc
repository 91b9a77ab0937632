#include "fs/meta/snapshot_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/meta/snapshot_counters.h"
#include "fs/meta/snapshot_port.h"
#include "fs/records/schema.h"

namespace siltfs {

Result<SnapshotState> SnapshotState::Read(const KvSnapshot& metadata) {
  SnapshotState state;
  SILTFS_ASSIGN_OR_RETURN(state.all_, ReadSnapshots(metadata));
  SILTFS_ASSIGN_OR_RETURN(state.next_, ReadNextSnapshot(metadata));
  SILTFS_ASSIGN_OR_RETURN(state.lineages_, ReadLineages(metadata));
  state.MakeKeeper();
  return state;
}

void SnapshotState::MakeKeeper() { keeper_ = VersionKeeper(BoundsOf(all_, kLiveLineage)); }

bool SnapshotState::HasName(std::string_view name) const {
  return std::ranges::any_of(all_, [name](const NumberedSnapshot& snapshot) {
    return !snapshot.record.removing && snapshot.record.name == name;
  });
}

Result<NumberedSnapshot*> SnapshotState::Find(uint64_t number, bool removing) {
  const auto found = std::ranges::lower_bound(all_, number, {}, &NumberedSnapshot::number);
  if (found == all_.end() || found->number != number || found->record.removing != removing)
    return Status(StatusCode::kNotFound, fmt::format("there is no snapshot {}", number));
  return &*found;
}

void SnapshotState::Add(const WantedSnapshot& wanted, uint64_t commit, uint64_t inode_limit,
                        const Counters& counters, std::vector<Mutation>& mutations) {
  SnapshotRecord record;
  record.name = wanted.name;
  record.created = wanted.created;
  record.commit = commit;
  // Limits never fall. Early records have limits above the numbers that were in use.
  record.inode_limit = inode_limit;
  for (const NumberedSnapshot& older : all_) {
    if (older.record.lineage == kLiveLineage)
      record.inode_limit = std::max(record.inode_limit, older.record.inode_limit);
  }
  SetCounters(counters, record);
  Append(std::move(record), mutations);
}

void SnapshotState::Append(SnapshotRecord record, std::vector<Mutation>& mutations) {
  mutations.push_back({SnapshotKey(next_), record.Encode()});
  all_.push_back({next_, std::move(record)});
  mutations.push_back({std::string(kNextSnapshotKey), EncodeNextSnapshot(++next_)});
  MakeKeeper();
}

Status SnapshotState::Rename(uint64_t number, std::string name, std::vector<Mutation>& mutations) {
  SILTFS_ASSIGN_OR_RETURN(NumberedSnapshot* const snapshot, Find(number, false));
  if (snapshot->record.name == name) return Status::Ok();
  if (HasName(name)) return {StatusCode::kAlreadyExists, "another snapshot has this name"};
  snapshot->record.name = std::move(name);
  mutations.push_back({SnapshotKey(number), snapshot->record.Encode()});
  return Status::Ok();
}

Status SnapshotState::BeginRemoval(uint64_t number, std::vector<Mutation>& mutations) {
  SILTFS_ASSIGN_OR_RETURN(NumberedSnapshot* const snapshot, Find(number, false));
  if (snapshot->record.restoring)
    return {StatusCode::kInUse, "the files are being rolled back to this snapshot"};
  const LineageNumber lineage = snapshot->record.lineage;
  const auto of_lineage = BoundsOf(all_, lineage);
  // The head of a lineage is to become what the snapshot before shows.
  if (lineage != kLiveLineage && of_lineage.back().number == number)
    SetLineage(lineage, LineageRecord{.changed = true}, mutations);
  snapshot->record.removing = true;
  mutations.push_back({SnapshotKey(number), snapshot->record.Encode()});
  MakeKeeper();
  return Status::Ok();
}

Status SnapshotState::BeginRestore(uint64_t number, std::vector<Mutation>& mutations) {
  SILTFS_ASSIGN_OR_RETURN(NumberedSnapshot* const snapshot, Find(number, false));
  SILTFS_RETURN_IF_ERROR(CheckRestorable(snapshot->record));
  if (std::ranges::any_of(all_, [](const auto& other) { return other.record.restoring; }))
    return {StatusCode::kInUse, "another rollback is not finished"};
  snapshot->record.restoring = true;
  mutations.push_back({SnapshotKey(number), snapshot->record.Encode()});
  return Status::Ok();
}

Status SnapshotState::EndRestore(uint64_t number, std::vector<Mutation>& mutations) {
  SILTFS_ASSIGN_OR_RETURN(NumberedSnapshot* const snapshot, Find(number, false));
  snapshot->record.restoring = false;
  mutations.push_back({SnapshotKey(number), snapshot->record.Encode()});
  return Status::Ok();
}

Status SnapshotState::EndRemoval(uint64_t number, std::vector<Mutation>& mutations) {
  SILTFS_RETURN_IF_ERROR(Find(number, true).status());
  std::erase_if(all_, [number](const NumberedSnapshot& s) { return s.number == number; });
  mutations.push_back({SnapshotKey(number), std::nullopt});
  return Status::Ok();
}

Result<LineageNumber> SnapshotState::AddLineage(const LineageRecord& record,
                                                std::vector<Mutation>& mutations) {
  LineageNumber lineage = kLiveLineage + 1;
  while (lineages_.contains(lineage)) ++lineage;
  if (lineage >= kLineageLimit)
    return Status(StatusCode::kUnsupported, "the store has too many lineages of snapshots");
  SetLineage(lineage, record, mutations);
  return lineage;
}

void SnapshotState::SetLineage(LineageNumber lineage, const std::optional<LineageRecord>& record,
                               std::vector<Mutation>& mutations) {
  if (record) {
    lineages_[lineage] = *record;
    mutations.push_back({LineageKey(lineage), record->Encode()});
  } else {
    lineages_.erase(lineage);
    mutations.push_back({LineageKey(lineage), std::nullopt});
  }
}

Result<NumberedSnapshot> SnapshotState::AddReceived(SnapshotRecord record,
                                                    std::vector<Mutation>& mutations) {
  if (HasName(record.name))
    return Status(StatusCode::kAlreadyExists, "another snapshot has this name");
  if (next_ >= kSnapshotNumberLimit) {
    return Status(StatusCode::kUnsupported,
                  "the store has used all numbers of snapshots, so it cannot have new ones");
  }
  SetLineage(record.lineage, LineageRecord{}, mutations);
  Append(std::move(record), mutations);
  return all_.back();
}

}  // namespace siltfs
