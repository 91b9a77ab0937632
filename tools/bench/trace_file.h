// A trace of deduplication: the names of all chunks of real files, in the order in which a backup
// stores them. On disk: magic (8 bytes), mean length of the chunks (u32), size of a value (u32),
// number of names (u64), names (20 bytes each), XXH3-64 of everything before. The values of a chunk
// index are locations; the stated size tells how large values were where the trace was recorded.
//
// Errors: kCorruption for a file that is no trace, kIoError, kNotFound. Thread-safety: functions
// and plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/base/chunk_name.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct DedupTrace {
  uint32_t chunk_bytes = 0;  // mean
  uint32_t value_bytes = 0;
  std::vector<ChunkName> names;
};

Status WriteTrace(Env& env, const std::string& path, const DedupTrace& trace);
Result<DedupTrace> ReadTrace(Env& env, const std::string& path);

}  // namespace siltfs
