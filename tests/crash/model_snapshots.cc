#include "tests/crash/model_snapshots.h"

#include <algorithm>

#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

Status NoSuch() { return {StatusCode::kNotFound, "there is no such snapshot"}; }
Status Taken() { return {StatusCode::kAlreadyExists, "the name is taken"}; }

SnapshotInfo InfoOf(std::string_view name, const ModelSnapshot& snapshot) {
  return {.number = snapshot.number, .name = std::string(name)};
}

}  // namespace

std::string ModelSnapshots::TextOf(std::string_view name) {
  const MutexLock lock(mutex_);
  ModelSnapshot& snapshot = snapshots_.find(name)->second;
  if (snapshot.text.empty()) {
    MemoryFileSystem shown(snapshot.state->inodes);
    snapshot.text = describe(shown);
  }
  return snapshot.text;
}

std::shared_ptr<const MemoryInodes> ModelSnapshots::InodesOf(uint64_t number) const {
  const MutexLock lock(mutex_);
  for (const auto& [name, snapshot] : snapshots_) {
    // The pointer keeps the whole state.
    if (snapshot.number == number) return {snapshot.state, &snapshot.state->inodes};
  }
  return nullptr;
}

std::optional<ModelSnapshot> ModelSnapshots::FindModel(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto found = snapshots_.find(name);
  if (found == snapshots_.end()) return std::nullopt;
  return found->second;
}

std::optional<ModelSnapshot> ModelSnapshots::FindReceived(const ModelState* state) const {
  const MutexLock lock(mutex_);
  for (const auto& [name, snapshot] : snapshots_) {
    if (snapshot.lineage != 0 && snapshot.state.get() == state) return snapshot;
  }
  return std::nullopt;
}

bool ModelSnapshots::IsNewest(const ModelSnapshot& snapshot) const {
  const MutexLock lock(mutex_);
  return std::ranges::none_of(snapshots_, [&](const auto& named) {
    return named.second.lineage == snapshot.lineage && named.second.number > snapshot.number;
  });
}

void ModelSnapshots::AddReceived(std::string_view name, std::shared_ptr<const ModelState> state,
                                 std::optional<uint64_t> lineage) {
  const MutexLock lock(mutex_);
  Add(name, lineage ? *lineage : next_lineage_++, std::move(state));
}

SnapshotInfo ModelSnapshots::Add(std::string_view name, uint64_t lineage,
                                 std::shared_ptr<const ModelState> state) {
  const ModelSnapshot made{.number = next_++, .lineage = lineage, .state = std::move(state)};
  snapshots_.emplace(name, made);
  return InfoOf(name, made);
}

std::vector<SnapshotInfo> ModelSnapshots::List() const {
  const MutexLock lock(mutex_);
  std::vector<SnapshotInfo> list;
  for (const auto& [name, snapshot] : snapshots_) list.push_back(InfoOf(name, snapshot));
  return list;
}

Result<SnapshotInfo> ModelSnapshots::Find(std::string_view name) const {
  const auto found = FindModel(name);
  if (!found) return NoSuch();
  return InfoOf(name, *found);
}

Result<std::vector<SnapshotSpace>> ModelSnapshots::Measure(const std::function<Status()>&) {
  return Status(StatusCode::kUnsupported, "the model has no chunks to measure");
}

Result<SnapshotInfo> ModelSnapshots::Create(std::string_view name) {
  const MutexLock lock(mutex_);
  if (snapshots_.contains(name)) return Taken();
  return Add(name, 0, std::make_shared<ModelState>(inodes_));
}

Status ModelSnapshots::Rename(std::string_view name, std::string_view new_name) {
  const MutexLock lock(mutex_);
  const auto found = snapshots_.find(name);
  if (found == snapshots_.end()) return NoSuch();
  if (name == new_name) return Status::Ok();
  if (snapshots_.contains(new_name)) return Taken();
  snapshots_.emplace(new_name, found->second);
  snapshots_.erase(found);
  return Status::Ok();
}

Status ModelSnapshots::Remove(std::string_view name) {
  const MutexLock lock(mutex_);
  const auto found = snapshots_.find(name);
  if (found == snapshots_.end()) return NoSuch();
  snapshots_.erase(found);
  return Status::Ok();
}

Status ModelSnapshots::Diff(std::string_view, std::optional<std::string_view>,
                            const std::function<Status()>&,
                            const std::function<Status(const PathChange&)>&) {
  return {StatusCode::kUnsupported, "the model compares no snapshots"};
}

Result<SnapshotInfo> ModelSnapshots::RollBack(std::string_view name, std::string_view kept,
                                              KernelCache*) {
  const MutexLock lock(mutex_);
  const bool in_use = std::ranges::any_of(
      inodes_.all(), [](const auto& numbered) { return numbered.second.opens > 0; });
  // The checks are in the order of the store, so that both give the same answer.
  const auto wanted = snapshots_.find(name);
  if (wanted == snapshots_.end()) return NoSuch();
  if (wanted->second.lineage != 0)
    return Status(StatusCode::kInvalidArgument, "the snapshot was received");
  if (snapshots_.contains(kept)) return Taken();
  if (in_use) return Status(StatusCode::kInUse, "an inode is open");
  const std::shared_ptr<const ModelState> state = wanted->second.state;
  SnapshotInfo made = Add(kept, 0, std::make_shared<ModelState>(inodes_));
  inodes_.Restore(state->inodes);
  return made;
}

Result<std::unique_ptr<FileSystem>> ModelSnapshots::Show(std::string_view name) {
  const auto found = FindModel(name);
  if (!found) return NoSuch();
  return std::unique_ptr<FileSystem>(std::make_unique<MemoryFileSystem>(found->state->inodes));
}

}  // namespace siltfs::testing
