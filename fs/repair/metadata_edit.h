// One step of a repair of metadata: what it reads, as of one moment, and what it changes, as one
// write. So a step is made as a whole or not at all, and the next one finds what it left.
//
// Not thread-safe. Memory: what is changed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/meta/kv_store.h"

namespace siltfs {

class MetadataEdit {
 public:
  // `kv` must outlive it.
  explicit MetadataEdit(KvStore& kv) : kv_(kv), snapshot_(kv.Snapshot()) {}

  const KvSnapshot& snapshot() const { return *snapshot_; }
  void Put(std::string key, std::string value) {
    mutations_.push_back({std::move(key), std::move(value)});
  }
  void Remove(std::string key) { mutations_.push_back({std::move(key), std::nullopt}); }

  // Durable on return; does nothing if nothing was changed. Later calls write what came since.
  Status Write();
  // Written so far.
  uint64_t changes() const { return changes_; }

 private:
  KvStore& kv_;
  const std::shared_ptr<const KvSnapshot> snapshot_;
  std::vector<Mutation> mutations_;
  uint64_t changes_ = 0;
};

}  // namespace siltfs
