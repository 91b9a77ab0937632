// How many lookups searched each store of a version of a partition. A lookup searches the stores
// from the newest to the oldest and ends at one of them, so it counts once, at the number of stores
// that it searched; it does not touch a counter of each store. The sums are added to the stores'
// counters when the version is replaced, and when statistics are read.
//
// Thread-safety: Count and Probes from any thread; AddTo when no other call runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/flash/store_counters.h"

namespace siltfs {

class ProbeTally {
 public:
  ProbeTally() = default;
  ~ProbeTally() { delete[] ended_.load(std::memory_order_acquire); }
  ProbeTally(const ProbeTally&) = delete;
  ProbeTally& operator=(const ProbeTally&) = delete;

  // Counts a lookup that searched `searched` of the version's `stores` stores. `stores` must always
  // be the same.
  void Count(size_t searched, size_t stores) const {
    Counter* ended = ended_.load(std::memory_order_acquire);
    if (ended == nullptr) ended = Allocate(stores);
    ended[searched].fetch_add(1, std::memory_order_relaxed);
  }

  // How often each of `stores` stores was searched, the newest first.
  std::vector<uint64_t> Probes(size_t stores) const {
    std::vector<uint64_t> probes(stores);
    const Counter* const ended = ended_.load(std::memory_order_acquire);
    if (ended == nullptr) return probes;
    uint64_t beyond = 0;
    for (size_t i = stores; i-- > 0;) {
      beyond += ended[i + 1].load(std::memory_order_relaxed);
      probes[i] = beyond;
    }
    return probes;
  }

  bool used() const { return ended_.load(std::memory_order_acquire) != nullptr; }
  void AddTo(const std::vector<StoreCounters*>& counters) const {
    const std::vector<uint64_t> probes = Probes(counters.size());
    for (size_t i = 0; i < counters.size(); ++i) siltfs::Count(counters[i]->probes, probes[i]);
  }

 private:
  using Counter = std::atomic<uint64_t>;

  Counter* Allocate(size_t stores) const {
    auto made = std::make_unique<Counter[]>(stores + 1);
    Counter* expected = nullptr;
    if (ended_.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) {
      return made.release();
    }
    return expected;
  }

  // By the number of stores searched; null until the first lookup.
  mutable std::atomic<Counter*> ended_{nullptr};
};

}  // namespace siltfs
