#include "fs/repair/check_findings.h"

#include <algorithm>
#include <utility>

#include "store/segment/segment_store.h"

namespace siltfs {
namespace {

// Collects ranges in any order and merges adjacent ones.
class LostRanges {
 public:
  void Add(const LostRange& range) {
    ranges_.push_back(range);
    if (ranges_.size() >= limit_) Merge();
  }
  std::vector<LostRange> Take() {
    Merge();
    return std::move(ranges_);
  }

 private:
  static constexpr size_t kLeastLimit = size_t{1} << 16;

  void Merge() {
    std::sort(ranges_.begin(), ranges_.end());
    std::vector<LostRange> merged;
    for (const LostRange& range : ranges_) {
      LostRange* last = merged.empty() ? nullptr : &merged.back();
      if (last != nullptr && last->snapshot == range.snapshot && last->inode == range.inode &&
          range.offset <= last->offset + last->length) {
        last->length =
            std::max(last->offset + last->length, range.offset + range.length) - last->offset;
      } else {
        merged.push_back(range);
      }
    }
    ranges_ = std::move(merged);
    limit_ = std::max(kLeastLimit, 2 * ranges_.size());
  }

  std::vector<LostRange> ranges_;
  size_t limit_ = kLeastLimit;
};

}  // namespace

FindingPlace PlaceOf(const Finding& finding) {
  return {finding.code, finding.path, finding.offset, finding.inode};
}

bool CheckFindings::Has(std::string_view code) const {
  return std::any_of(findings.begin(), findings.end(),
                     [code](const Finding& finding) { return finding.code == code; });
}

bool CheckFindings::HasAnyOf(std::initializer_list<std::string_view> codes) const {
  return std::any_of(codes.begin(), codes.end(),
                     [this](std::string_view code) { return Has(code); });
}

bool CheckFindings::HasAnyWith(std::string_view prefix) const {
  return std::any_of(findings.begin(), findings.end(),
                     [prefix](const Finding& finding) { return finding.code.starts_with(prefix); });
}

std::set<FindingPlace> CheckFindings::Places() const {
  std::set<FindingPlace> places;
  for (const Finding& finding : findings) places.insert(PlaceOf(finding));
  return places;
}

SegmentFindings CheckFindings::BySegment(const SegmentStore& segments) const {
  SegmentFindings by_segment;
  for (const Finding& finding : findings) {
    const auto id = segments.IdOf(finding.path);
    if (id) by_segment[*id].insert(finding.code);
  }
  return by_segment;
}

Result<CheckFindings> CheckAndKeep(Env& env, CheckOptions options, size_t most) {
  CheckFindings found;
  options.on_finding = [&found, most,
                        tell = std::move(options.on_finding)](const Finding& finding) {
    if (found.findings.size() < most) found.findings.push_back(finding);
    if (tell) tell(finding);
  };
  LostRanges lost;
  options.on_lost = [&lost](const LostRange& range) { lost.Add(range); };
  SILTFS_ASSIGN_OR_RETURN(found.report, CheckLockedStore(env, options));
  found.lost = lost.Take();
  return found;
}

}  // namespace siltfs
