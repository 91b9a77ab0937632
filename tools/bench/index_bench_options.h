// The options of siltfs-bench index.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/index_strategy.h"

namespace siltfs {

// A ratio of puts to gets.
struct Mix {
  uint64_t puts = 1;
  uint64_t gets = 0;
};

struct IndexBenchOptions {
  IndexChoice index;
  std::vector<std::string> engines;  // measured instead of `index`, one after the other
  uint64_t entries = 1'000'000;
  uint64_t updates = 0;
  std::string directory;
  uint64_t gets = 200'000;
  uint64_t single_gets = 20'000;
  std::string mix_text;
  Mix mix;
  uint64_t mixed = 0;
  uint64_t mix_per_s = 0;
  std::optional<uint64_t> memory;
  std::vector<std::string> memory_steps;
  uint64_t step_gets = 20'000;
  uint64_t step_updates = 0;
  std::string trace;  // a path; empty: no trace
  uint64_t trace_milliseconds = 100;
  bool keep = false;
  bool die = false;
  unsigned threads = 2;
  uint64_t put_batch = 1024;
  uint64_t get_batch = 65536;
  unsigned rounds = 5;
  uint64_t seed = 1;

  uint64_t MemoryLimit() const { return memory.value_or(UINT64_MAX); }
  // The number of puts that are mixed with lookups.
  uint64_t MixedEntries() const {
    const uint64_t second_half = entries - entries / 2;
    return mixed == 0 || mixed > second_half ? second_half : mixed;
  }
};

}  // namespace siltfs
