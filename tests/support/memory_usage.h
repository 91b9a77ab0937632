// The UsageMeasures of MemoryFileSystem, which counts nothing.
//
// Thread-safety: every call from any thread.
#pragma once

#include "fs/interface/space_usage.h"

namespace siltfs::testing {

class MemoryUsage final : public UsageMeasures {
 public:
  Result<UsageReport> Measure(const UsageRequest&) override { return NotHere(); }
  Result<DuplicateReport> FindDuplicates(const DuplicateRequest&) override { return NotHere(); }

 private:
  static Status NotHere() { return {StatusCode::kUnsupported, "it has no chunks"}; }
};

}  // namespace siltfs::testing
