// Lookups of the index benchmark: random names in batches, every answer compared.
//
// Errors: throws BenchFailure, also at a wrong answer. Thread-safety: an IndexGets belongs to one
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
  // Borrows both.
  IndexGets(ChunkIndex& index, const IndexKeys& keys, size_t batch, uint64_t seed);

  // One call of Get with `count` names (at most a batch) out of the first `present` numbers.
  void GetPresent(size_t count, uint64_t present);
  // One call of Get with names that were never put.
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
