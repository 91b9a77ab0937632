// Counters of a component store of an index since it was opened.
//
// Thread-safety: any.
#pragma once

#include <atomic>

#include "index/chunk_index.h"
#include "index/flash/store_files.h"

namespace siltfs {

struct StoreCounters {
  std::atomic<uint64_t> probes{0};           // lookups that searched this store
  std::atomic<uint64_t> flash_reads{0};      // for lookups
  std::atomic<uint64_t> false_positives{0};  // reads of a slot that had another name
  std::atomic<uint64_t> bytes_written{0};

  IndexComponentStats Stats(const StoreFileId& file) const {
    IndexComponentStats stats;
    stats.kind = StoreKindName(file.kind);
    stats.partition = file.partition;
    stats.id = file.id;
    stats.probes = probes.load(std::memory_order_relaxed);
    stats.flash_reads = flash_reads.load(std::memory_order_relaxed);
    stats.false_positives = false_positives.load(std::memory_order_relaxed);
    stats.flash_bytes_written = bytes_written.load(std::memory_order_relaxed);
    return stats;
  }
};

inline void Count(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace siltfs
