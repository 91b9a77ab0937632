// The Snapshots of MemoryFileSystem, which have names and no content.
//
// Thread-safety: every call from any thread. Errors: those of Snapshots.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/interface/snapshots.h"
#include "store/base/thread_annotations.h"

namespace siltfs::testing {

class MemorySnapshots final : public Snapshots {
 public:
  std::vector<SnapshotInfo> List() const override {
    const MutexLock lock(mutex_);
    std::vector<SnapshotInfo> list;
    for (const std::string& name : names_) list.push_back({.name = name});
    return list;
  }
  Result<SnapshotInfo> Find(std::string_view name) const override {
    const MutexLock lock(mutex_);
    if (!names_.contains(name)) return NoSuch();
    return SnapshotInfo{.name = std::string(name)};
  }
  Result<std::vector<SnapshotSpace>> Measure(const std::function<Status()>& check) override {
    if (check) SILTFS_RETURN_IF_ERROR(check());
    std::vector<SnapshotSpace> spaces;
    for (SnapshotInfo& snapshot : List()) spaces.push_back({.snapshot = std::move(snapshot)});
    return spaces;
  }
  Result<SnapshotInfo> Create(std::string_view name) override {
    const MutexLock lock(mutex_);
    if (!names_.emplace(name).second) return Taken();
    return SnapshotInfo{.name = std::string(name)};
  }
  Status Rename(std::string_view name, std::string_view new_name) override {
    const MutexLock lock(mutex_);
    const auto found = names_.find(name);
    if (found == names_.end()) return NoSuch();
    if (name == new_name) return Status::Ok();
    if (!names_.emplace(new_name).second) return Taken();
    names_.erase(found);
    return Status::Ok();
  }
  Status Remove(std::string_view name) override {
    const MutexLock lock(mutex_);
    const auto found = names_.find(name);
    if (found == names_.end()) return NoSuch();
    names_.erase(found);
    return Status::Ok();
  }
  Status Diff(std::string_view, std::optional<std::string_view>, const std::function<Status()>&,
              const std::function<Status(const PathChange&)>&) override {
    return {StatusCode::kUnsupported, "a file system in memory compares no snapshots"};
  }
  Result<SnapshotInfo> RollBack(std::string_view, std::string_view, KernelCache*) override {
    return Status(StatusCode::kUnsupported, "a file system in memory has no rollback");
  }
  Status AwaitRemovals() override { return Status::Ok(); }
  void InterruptRemovals() override {}
  WorkProgress progress() const override { return {}; }
  Result<std::unique_ptr<FileSystem>> Show(std::string_view) override {
    return Status(StatusCode::kUnsupported, "snapshots in memory cannot be shown");
  }

 private:
  static Status NoSuch() { return {StatusCode::kNotFound, "there is no such snapshot"}; }
  static Status Taken() { return {StatusCode::kAlreadyExists, "the name is taken"}; }

  mutable Mutex mutex_;
  std::set<std::string, std::less<>> names_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::testing
