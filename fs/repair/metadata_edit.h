// One step of a metadata repair: reads one snapshot and writes its changes atomically. So a step
// happens as a whole or not at all, and the next step reads its result.
//
// Not thread-safe. Memory: the changes.
#pragma once

#include <memory>
#include <string>
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

  // Writes the changes that were made since the last call. They are durable on return. Does nothing
  // if there are none.
  Status Write();
  // Number of changes written so far.
  uint64_t changes() const { return changes_; }

 private:
  KvStore& kv_;
  const std::shared_ptr<const KvSnapshot> snapshot_;
  std::vector<Mutation> mutations_;
  uint64_t changes_ = 0;
};

}  // namespace siltfs
