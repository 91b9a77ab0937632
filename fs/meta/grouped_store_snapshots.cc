// The snapshots of a GroupedStore, and the lineages of received ones.

#include <algorithm>
#include <utility>

#include "fs/meta/grouped_store.h"
#include "fs/versions/lineage_view.h"

namespace siltfs {
namespace {

// The most versions of hidden inodes that one write keeps. Commits wait for the write.
constexpr size_t kVersionsPerWrite = 4096;

Status Taken() { return {StatusCode::kAlreadyExists, "another snapshot has this name"}; }

}  // namespace

std::vector<NumberedSnapshot> GroupedStore::Snapshots() const { return SnapshotsNow()->all(); }

bool GroupedStore::IsWanted(std::string_view name) const {
  const auto wants = [name](const NumberedGroup* group) {
    return group != nullptr && std::ranges::any_of(group->wanted, [name](const auto& wanted) {
             return wanted.name == name;
           });
  };
  return wants(open_.get()) || wants(closed_.get()) ||
         std::ranges::find(renaming_to_, name) != renaming_to_.end();
}

Status GroupedStore::CheckNumbersLeft(const SnapshotState& snapshots) {
  if (snapshots.next() < kSnapshotNumberLimit) return Status::Ok();
  return {StatusCode::kUnsupported,
          "the store has used all numbers of snapshots, so it cannot have new ones"};
}

Result<NumberedSnapshot> GroupedStore::CreateSnapshot(std::string name, int64_t created,
                                                      std::function<uint64_t()> inode_limit) {
  const MutexLock making(making_mutex_);
  SILTFS_RETURN_IF_ERROR(WaitForRoom());
  MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(Writable());
  SILTFS_RETURN_IF_ERROR(CheckNumbersLeft(*snapshots_));
  if (snapshots_->HasName(name) || IsWanted(name)) return Taken();
  const uint64_t number = open_->number;
  open_->wanted.push_back({name, created, std::move(inode_limit)});
  ApplyToOpen({}, {}, {});
  Status made = WaitForCommit(number);
  // The disk is full, and the group is kept for later. Another attempt may already run.
  while (made.Is(StatusCode::kNoSpace) && completed_ < number && failure_.ok()) {
    NumberedGroup* const group = open_->number == number ? open_.get() : closed_.get();
    if (group == open_.get() || !trying_) {
      std::erase_if(group->wanted, [&](const WantedSnapshot& w) { return w.name == name; });
      return made;
    }
    progress_.Wait(mutex_);
  }
  if (completed_ < number) return made;
  made.IgnoreError("a later attempt has made the snapshot");
  for (const NumberedSnapshot& snapshot : snapshots_->all()) {
    if (snapshot.record.name == name && snapshot.record.commit == number) return snapshot;
  }
  return Status(StatusCode::kNotFound, "the snapshot was removed at once");
}

Status GroupedStore::EditSnapshots(
    const std::function<Status(SnapshotState&, std::vector<Mutation>&)>& edit) {
  MutexLock write_lock(kv_write_mutex_);
  auto state = std::make_shared<SnapshotState>(*SnapshotsNow());
  std::vector<Mutation> mutations;
  SILTFS_RETURN_IF_ERROR(edit(*state, mutations));
  return mutations.empty() ? Status::Ok() : WriteNow(mutations, std::move(state));
}

Status GroupedStore::RenameSnapshot(uint64_t number, std::string name) {
  {
    MutexLock lock(mutex_);
    if (IsWanted(name)) return {StatusCode::kAlreadyExists, "another snapshot has this name"};
    renaming_to_.push_back(name);
  }
  Status renamed = EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    return state.Rename(number, name, mutations);
  });
  MutexLock lock(mutex_);
  std::erase(renaming_to_, name);
  return renamed;
}

Status GroupedStore::BeginRemoval(uint64_t number) {
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    return state.BeginRemoval(number, mutations);
  });
}

VersionRelease GroupedStore::BeginRelease(uint64_t number) const {
  const auto state = SnapshotsNow();
  LineageNumber lineage = kLiveLineage;
  for (const NumberedSnapshot& snapshot : state->all()) {
    if (snapshot.number == number) lineage = snapshot.record.lineage;
  }
  return VersionRelease(number, lineage, BoundsOf(state->all(), lineage), state->next() - 1);
}

// kv_write_mutex_ is not fair: without this, a thread that takes it again and again would keep the
// commit thread waiting.
void GroupedStore::AwaitAttempt() {
  MutexLock lock(mutex_);
  const uint64_t running = tries_;
  while (trying_ && tries_ == running && !stop_) progress_.Wait(mutex_);
}

Result<bool> GroupedStore::ReleaseSome(VersionRelease& release, size_t most) {
  AwaitAttempt();
  MutexLock write_lock(kv_write_mutex_);
  std::vector<Mutation> mutations;
  SILTFS_ASSIGN_OR_RETURN(const bool more, release.Next(*CommittedSnapshot(), most, mutations));
  if (!mutations.empty()) SILTFS_RETURN_IF_ERROR(WriteNow(mutations));
  return more;
}

Status GroupedStore::EndRemoval(uint64_t number) {
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    return state.EndRemoval(number, mutations);
  });
}

Result<NumberedSnapshot> GroupedStore::BeginRestore(uint64_t number, std::string kept,
                                                    int64_t created, uint64_t inode_limit) {
  const MutexLock making(making_mutex_);
  AwaitAttempt();
  Counters counters{};
  uint64_t commit = 0;
  {
    const MutexLock lock(mutex_);
    SILTFS_RETURN_IF_ERROR(CheckNumbersLeft(*snapshots_));
    if (IsWanted(kept)) return Taken();
    counters = committed_counters_;
    commit = completed_;
  }
  NumberedSnapshot made;
  const auto edit = [&](SnapshotState& state, std::vector<Mutation>& mutations) -> Status {
    SILTFS_RETURN_IF_ERROR(state.BeginRestore(number, mutations));
    if (state.HasName(kept)) return Taken();
    state.Add({std::move(kept), created, {}}, commit, inode_limit, counters, mutations);
    made = state.all().back();
    return Status::Ok();
  };
  SILTFS_RETURN_IF_ERROR(EditSnapshots(edit));
  return made;
}

Result<bool> GroupedStore::RestoreSome(
    VersionRestore& restore, size_t most,
    const std::function<void(std::string_view key)>& on_changed) {
  AwaitAttempt();
  MutexLock write_lock(kv_write_mutex_);
  std::vector<Mutation> mutations;
  const auto present = CommittedSnapshot();
  SILTFS_ASSIGN_OR_RETURN(const bool more, restore.Next(*present, most, mutations));
  if (mutations.empty()) return more;
  std::vector<std::string> keys;
  for (const Mutation& mutation : mutations) keys.push_back(mutation.key);
  const std::vector<std::string_view> changed(keys.begin(), keys.end());
  const VersionKeeper keeper(BoundsOf(SnapshotsNow()->all(), restore.lineage()));
  SILTFS_RETURN_IF_ERROR(keeper.Keep(*present, changed, mutations));
  SILTFS_RETURN_IF_ERROR(WriteNow(mutations));
  if (on_changed) {
    for (const std::string& key : keys) on_changed(key);
  }
  return more;
}

Status GroupedStore::EndRestore(uint64_t number) {
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    return state.EndRestore(number, mutations);
  });
}

Status GroupedStore::PublishHidden(const std::vector<HiddenRange>& ranges,
                                   const std::function<Status()>& publish) {
  const MutexLock making(making_mutex_);
  for (const HiddenRange& range : ranges) {
    std::string from;
    for (bool more = true; more;) {
      MutexLock write_lock(kv_write_mutex_);
      std::vector<Mutation> kept;
      SILTFS_ASSIGN_OR_RETURN(
          more, SnapshotsNow()->keeper().KeepHidden(*CommittedSnapshot(), range, kVersionsPerWrite,
                                                    from, kept));
      if (!kept.empty()) SILTFS_RETURN_IF_ERROR(WriteNow(kept));
    }
  }
  return publish();
}

// --- Lineages

Lineages GroupedStore::AllLineages() const { return SnapshotsNow()->lineages(); }

Result<LineageNumber> GroupedStore::AddLineage(const LineageRecord& record) {
  LineageNumber added = 0;
  Status edited =
      EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) -> Status {
        SILTFS_ASSIGN_OR_RETURN(added, state.AddLineage(record, mutations));
        return Status::Ok();
      });
  SILTFS_RETURN_IF_ERROR(edited);
  return added;
}

Status GroupedStore::SetLineage(LineageNumber lineage, const std::optional<LineageRecord>& record) {
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    state.SetLineage(lineage, record, mutations);
    return Status::Ok();
  });
}

Status GroupedStore::WriteHead(LineageNumber lineage, const std::vector<Mutation>& records,
                               const LineageRecord& record) {
  AwaitAttempt();
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) -> Status {
    std::vector<std::string_view> changed;
    changed.reserve(records.size());
    for (const Mutation& change : records) {
      mutations.push_back({KeyInLineage(change.key, lineage), change.value});
      uint64_t inode = 0;
      if (!IsVersionedKey(mutations.back().key, inode) || LineageOf(inode) != lineage)
        return {StatusCode::kInvalidArgument, "a key is not of the lineage"};
    }
    for (const Mutation& change : mutations) changed.push_back(change.key);
    std::vector<Mutation> kept;
    SILTFS_RETURN_IF_ERROR(
        VersionKeeper(BoundsOf(state.all(), lineage)).Keep(*CommittedSnapshot(), changed, kept));
    std::ranges::move(kept, std::back_inserter(mutations));
    state.SetLineage(lineage, record, mutations);
    return Status::Ok();
  });
}

Status GroupedStore::EndHeadRestore(LineageNumber lineage, uint64_t restored) {
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    const auto own = BoundsOf(state.all(), lineage);
    const auto found = state.lineages().find(lineage);
    // The snapshot may have been removed meanwhile. Then another restore follows.
    if (found != state.lineages().end() && !found->second.incoming && !own.empty() &&
        own.back().number == restored)
      state.SetLineage(lineage, LineageRecord{}, mutations);
    return Status::Ok();
  });
}

Result<NumberedSnapshot> GroupedStore::AddReceived(SnapshotRecord record) {
  // A snapshot of the live files that is being made may need the last number.
  const MutexLock making(making_mutex_);
  {
    MutexLock lock(mutex_);
    if (IsWanted(record.name))
      return Status(StatusCode::kAlreadyExists, "another snapshot has this name");
    renaming_to_.push_back(record.name);
  }
  const std::string name = record.name;
  NumberedSnapshot added;
  const Status done =
      EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) -> Status {
        SILTFS_ASSIGN_OR_RETURN(added, state.AddReceived(std::move(record), mutations));
        return Status::Ok();
      });
  {
    MutexLock lock(mutex_);
    std::erase(renaming_to_, name);
  }
  SILTFS_RETURN_IF_ERROR(done);
  return added;
}

}  // namespace siltfs
