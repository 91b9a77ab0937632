// Records a trace of deduplication from directories: cuts all regular files, in the order of their
// names, and names the chunks, as a store does when they are written into it.
//
// Errors: throws BenchFailure. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/env/env.h"
#include "tools/bench/trace_file.h"

namespace siltfs {

struct RecordedTrace {
  DedupTrace trace;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// `directories` are taken in the given order, like the generations of a backup.
RecordedTrace RecordTrace(Env& env, const std::vector<std::string>& directories,
                          uint32_t chunk_bytes, uint32_t value_bytes);

}  // namespace siltfs
