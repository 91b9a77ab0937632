// The findings of a check of a store, kept for the repair.
//
// Thread-safety: as for a plain value. Memory: the kept findings, and the lost ranges of files.
// Adjacent ranges are merged.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/repair/segment_repair_run.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// The code, path, offset and inode of a finding. Two checks report the same finding with the same
// values, but perhaps with different messages.
using FindingPlace =
    std::tuple<std::string, std::string, std::optional<uint64_t>, std::optional<uint64_t>>;
FindingPlace PlaceOf(const Finding& finding);

struct CheckFindings {
  CheckReport report;
  std::vector<Finding> findings;
  std::vector<LostRange> lost;  // ascending

  bool Has(std::string_view code) const;
  bool HasAnyOf(std::initializer_list<std::string_view> codes) const;
  bool HasAnyWith(std::string_view prefix) const;
  std::set<FindingPlace> Places() const;
  // The codes of the findings in segments of this store, by segment.
  SegmentFindings BySegment(const SegmentStore& segments) const;
};

// Runs CheckLockedStore and keeps the first `most` findings. Calls options.on_finding, but not
// options.on_lost.
Result<CheckFindings> CheckAndKeep(Env& env, CheckOptions options, size_t most);

}  // namespace siltfs
