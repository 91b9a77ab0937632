// The Snapshots of MemoryFileSystem: names, each with a text that describes the state.
//
// Thread-safety: every call from any thread. Errors: those of Snapshots.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/interface/snapshots.h"
#include "store/base/thread_annotations.h"

namespace siltfs::testing {

class MemorySnapshots final : public Snapshots {
 public:
  // Set it before the first Create. It describes the state of the file system.
  std::function<std::string()> describe = [] { return std::string(); };

  // The text of a snapshot that exists.
  std::string TextOf(const std::string& name) const {
    const MutexLock lock(mutex_);
    return texts_.at(name);
  }

  std::vector<SnapshotInfo> List() const override {
    const MutexLock lock(mutex_);
    std::vector<SnapshotInfo> list;
    for (const auto& named : texts_) list.push_back({.name = named.first});
    return list;
  }
  Result<SnapshotInfo> Find(std::string_view name) const override {
    const MutexLock lock(mutex_);
    if (!texts_.contains(name)) return NoSuch();
    return SnapshotInfo{.name = std::string(name)};
  }
  Result<std::vector<SnapshotSpace>> Measure(const std::function<Status()>& check) override {
    if (check) SILTFS_RETURN_IF_ERROR(check());
    std::vector<SnapshotSpace> spaces;
    for (SnapshotInfo& snapshot : List()) spaces.push_back({.snapshot = std::move(snapshot)});
    return spaces;
  }
  Result<SnapshotInfo> Create(std::string_view name) override {
    std::string text = describe();
    const MutexLock lock(mutex_);
    if (!texts_.emplace(name, std::move(text)).second) return Taken();
    return SnapshotInfo{.name = std::string(name)};
  }
  Status Rename(std::string_view name, std::string_view new_name) override {
    const MutexLock lock(mutex_);
    const auto found = texts_.find(name);
    if (found == texts_.end()) return NoSuch();
    if (name == new_name) return Status::Ok();
    if (texts_.contains(new_name)) return Taken();
    texts_.emplace(new_name, std::move(found->second));
    texts_.erase(found);
    return Status::Ok();
  }
  Status Remove(std::string_view name) override {
    const MutexLock lock(mutex_);
    const auto found = texts_.find(name);
    if (found == texts_.end()) return NoSuch();
    texts_.erase(found);
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
  Result<std::unique_ptr<FileSystem>> Show(std::string_view) override {
    return Status(StatusCode::kUnsupported, "snapshots in memory cannot be shown");
  }

 private:
  static Status NoSuch() { return {StatusCode::kNotFound, "there is no such snapshot"}; }
  static Status Taken() { return {StatusCode::kAlreadyExists, "the name is taken"}; }

  mutable Mutex mutex_;
  std::map<std::string, std::string, std::less<>> texts_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::testing
