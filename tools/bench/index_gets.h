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
#include "tools/bench/latency_histogram.h"
#include "tools/bench/timed_step.h"
#include "tools/bench/update_order.h"

namespace siltfs {

class IndexGets {
 public:
  // Borrows `index` and `keys`.
  IndexGets(ChunkIndex& index, const IndexKeys& keys, size_t batch, uint64_t seed);

  // Expects the versions that entries have after the first `updates` updates. Borrows `order`.
  void ExpectUpdates(const UpdateOrder& order, uint64_t updates);
  // Records the time of each call of the index from now on. Borrows `latency`.
  void Record(LatencyHistogram& latency) { latency_ = &latency; }
  // Makes all calls of the index for one GetPresent or GetAbsent a step from now on. Borrows
  // `member`.
  void CallTogether(TimedStep::Member& member) { member_ = &member; }
  // At most this many names in each call of the index from now on; before, all of them.
  void LimitCalls(size_t names) { names_per_call_ = names; }

  // Gets `count` names (at most a batch) out of the first `present` numbers.
  void GetPresent(size_t count, uint64_t present);
  // Gets `count` names that were never put.
  void GetAbsent(size_t count);

 private:
  void Get(size_t count);

  ChunkIndex& index_;
  const IndexKeys& keys_;
  const UpdateOrder* order_ = nullptr;
  uint64_t updates_ = 0;
  LatencyHistogram* latency_ = nullptr;
  TimedStep::Member* member_ = nullptr;
  size_t names_per_call_ = SIZE_MAX;
  Random random_;
  std::vector<uint64_t> numbers_;
  std::vector<ChunkName> names_;
  std::vector<std::optional<Location>> results_;
};

}  // namespace siltfs
