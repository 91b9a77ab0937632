// What a check of a store has found, kept for who repairs it.
//
// Thread-safety: as a value. Memory: the findings that are kept, and what is lost of files, of
// which neighbours are one stretch.
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

// Which finding it is, in this check and a later one: what is said about it may differ. Its code,
// path, offset and inode.
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
  // The codes of those that are about a segment's file.
  SegmentFindings BySegment() const;
};

// CheckLockedStore, with the first `most` findings kept. on_finding of the options is told as ever,
// on_lost is not.
Result<CheckFindings> CheckAndKeep(Env& env, CheckOptions options, size_t most);

}  // namespace siltfs
