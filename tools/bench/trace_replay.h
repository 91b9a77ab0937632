// Replays a trace of deduplication on chunk indexes: looks the names up in batches, and puts those
// that are missing, as a store does with new chunks. Every answer is compared with the right one.
//
// Errors: throws BenchFailure, also for a wrong answer. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/env/env.h"
#include "tools/bench/index_strategy.h"
#include "tools/bench/trace_file.h"

namespace siltfs {

struct TraceReplayOptions {
  std::vector<IndexChoice> indexes;
  std::string directory;  // for the indexes; empty: the system's temporary directory
  std::optional<uint64_t> memory;
  uint64_t batch = 1024;            // names in a lookup
  uint64_t puts_per_flush = 65536;  // as many as a store puts between two flushes
  unsigned rounds = 1;
  uint64_t limit = UINT64_MAX;  // of names

  uint64_t MemoryLimit() const { return memory.value_or(UINT64_MAX); }
};

// Replays the trace on each index in turn, `rounds` times.
nlohmann::ordered_json ReplayTrace(Env& env, const DedupTrace& trace,
                                   const TraceReplayOptions& options);

}  // namespace siltfs
