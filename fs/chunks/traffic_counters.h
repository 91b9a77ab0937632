// Counts what programs read and write, and how often caches help. All counts are since the store
// was opened, and never decrease.
//
// Thread-safety: every call from any thread, without locks. A reader may see some counters of an
// operation before the others.
#pragma once

#include <atomic>
#include <cstdint>

namespace siltfs {

class Counter64 {
 public:
  void Add(uint64_t amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct TrafficCounters {
  // What programs get and give: bytes of file content, and calls that carry it. Imports and exports
  // count, too.
  Counter64 read_bytes;
  Counter64 reads;
  Counter64 written_bytes;
  Counter64 writes;
  // Data chunks that were put, duplicates included.
  Counter64 put_chunks;
  Counter64 put_bytes;
  // Those of put_chunks that were found without the index: as pending chunks, or in the footer
  // cache.
  Counter64 put_chunks_found_in_memory;
};

}  // namespace siltfs
