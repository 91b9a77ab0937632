// What the index benchmark is doing, for the thread that traces memory.
//
// Thread-safety: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace siltfs {

struct IndexProgress {
  std::atomic<const char*> phase{"open"};  // a literal
  std::atomic<uint64_t> entries{0};        // in the index
  std::atomic<uint64_t> puts{0};           // updates included
  std::atomic<uint64_t> gets{0};           // hits and misses
};

}  // namespace siltfs
