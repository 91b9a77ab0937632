// One step of a metadata repair: reads one snapshot and writes its changes atomically. So a step
// happens as a whole or not at all, and the next step reads its result.
//
// A step keeps the old values of records for the snapshots of the store, as a commit does
// (fs/versions/version_keeper.h). Otherwise a snapshot could show some repaired records of a file
// together with older ones. It keeps no values that cannot be decoded, and no absence of an inode:
// these are the damage itself, so snapshots show the repaired records instead.
//
// Not thread-safe. Memory: the changes, and the kept values.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/kv/kv_store.h"

namespace siltfs {

class MetadataEdit {
 public:
  // `kv` must outlive this object.
  explicit MetadataEdit(KvStore& kv) : kv_(kv), snapshot_(kv.Snapshot()) {}

  const KvSnapshot& snapshot() const { return *snapshot_; }
  void Put(std::string key, std::string value) {
    mutations_.push_back({std::move(key), std::move(value)});
  }
  void Remove(std::string key) { mutations_.push_back({std::move(key), std::nullopt}); }

  // Moves the changes to another step, which reads a newer snapshot.
  void MoveTo(MetadataEdit& other) {
    for (Mutation& mutation : mutations_) other.mutations_.push_back(std::move(mutation));
    mutations_.clear();
  }

  // Writes the changes that were made since the last call. They are durable on return. Does nothing
  // if there are none.
  Status Write();
  // Number of changes written so far, without kept values.
  uint64_t changes() const { return changes_; }

 private:
  // Adds the values that snapshots need to the mutations.
  Status KeepVersions();

  KvStore& kv_;
  const std::shared_ptr<const KvSnapshot> snapshot_;
  std::vector<Mutation> mutations_;
  uint64_t changes_ = 0;
};

}  // namespace siltfs
