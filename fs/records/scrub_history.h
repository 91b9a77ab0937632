// The ends of complete scrubs: the value of kScrubHistoryKey. `siltfs report` draws them. The last
// one has a record of its own, too (last_scrub_record.h), which earlier versions of siltfs read.
//
// Thread-safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fs/records/last_scrub_record.h"
#include "store/base/result.h"

namespace siltfs {

struct PastScrub {
  LastScrubRecord found;
  uint64_t chunks = 0;  // verified
  uint64_t bytes = 0;   // of segment files, read

  bool operator==(const PastScrub&) const = default;
};

class ScrubHistory {
 public:
  static constexpr size_t kMostScrubs = 100;

  // In the order of their ends.
  const std::vector<PastScrub>& scrubs() const { return scrubs_; }

  // Adds a scrub, and drops the oldest ones if there are too many.
  void Add(const PastScrub& scrub);

  std::string Encode() const;
  // kCorruption if the value is malformed, kNeedsNewer if another version of siltfs has written it.
  static Result<ScrubHistory> Decode(std::string_view value);

  bool operator==(const ScrubHistory&) const = default;

 private:
  std::vector<PastScrub> scrubs_;
};

}  // namespace siltfs
