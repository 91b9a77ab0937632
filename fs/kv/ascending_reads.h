// Looks up many keys of a snapshot in ascending order. If keys lie close together, a lookup moves
// an iterator by a few steps, which costs a fraction of a search.
//
// An iterator may pass many removed keys between two lookups. If it would, the lookup is made by
// FirstIn or Get of the snapshot, which read nothing outside of the key or range.
//
// Not thread-safe. Ownership: borrows the snapshot. Errors: those of the key-value store. Memory:
// an iterator. The results are the same in any order of the keys, but other orders are slow.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"

namespace siltfs {

class AscendingReads {
 public:
  explicit AscendingReads(const KvSnapshot& snapshot) : snapshot_(snapshot) {}

  // As KvSnapshot::FirstIn.
  Result<std::optional<KvEntry>> FirstIn(std::string_view begin, std::string_view end);
  // As KvSnapshot::Get.
  Result<std::optional<std::string>> Get(std::string_view key);

 private:
  // Moves the iterator to the first key that is not below this one. False if it has given up.
  Result<bool> MoveTo(std::string_view key);

  const KvSnapshot& snapshot_;
  std::unique_ptr<KvIterator> iterator_;  // null before the first call
  std::string from_;  // the iterator is at the first key that is not below this one
  bool positioned_ = false;
};

}  // namespace siltfs
