// Lookups of the index benchmark: gets random names in batches, and compares every answer.
//
// Errors: throws BenchFailure, also for a wrong answer. Thread-safety: an IndexGets belongs to one
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "index/chunk_index.h"
#include "store/base/random.h"
#include "tools/bench/index_keys.h"

namespace siltfs {

class IndexGets {
 public:
  // Borrows `index` and `keys`.
  IndexGets(ChunkIndex& index, const IndexKeys& keys, size_t batch, uint64_t seed);

  // Calls Get once with `count` names (at most a batch) out of the first `present` numbers.
  void GetPresent(size_t count, uint64_t present);
  // Calls Get once with `count` names that were never put.
  void GetAbsent(size_t count);

 private:
  void Get(size_t count);

  ChunkIndex& index_;
  const IndexKeys& keys_;
  Random random_;
  std::vector<uint64_t> numbers_;
  std::vector<ChunkName> names_;
  std::vector<std::optional<Location>> results_;
};

}  // namespace siltfs
