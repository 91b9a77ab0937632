// The history of a store's sizes: the value of kSavingsHistoryKey. `siltfs report` draws it.
//
// A history has at most kMostSamples samples, however old the store is. When a sample is one too
// many, an older one goes: the one whose neighbours are closest to each other, compared with its
// age. So recent samples are dense, old ones are sparse, and the first one stays.
//
// Thread-safety: one thread. Units: bytes and counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"

namespace siltfs {

// The fields as in FileSystemStats (fs/interface/stats.h).
struct SavingsSample {
  int64_t taken_ns = 0;  // nanoseconds since 1970, UTC
  uint64_t logical_bytes = 0;
  uint64_t unique_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t dead_bytes = 0;
  uint64_t metadata_bytes = 0;
  uint64_t index_bytes = 0;
  uint64_t files = 0;
  uint64_t chunks_logical = 0;
  uint64_t chunks_unique = 0;
  uint64_t index_memory_bytes = 0;
  uint64_t index_entries = 0;
  uint64_t damaged_chunks = 0;

  bool operator==(const SavingsSample&) const = default;
};

class SavingsHistory {
 public:
  static constexpr size_t kMostSamples = 256;

  // Ascending by time.
  const std::vector<SavingsSample>& samples() const { return samples_; }

  // Adds a sample. If the clock was ahead and was set back since, drops the samples that are not
  // older than the new one. But a sample that is older than the first one is ignored: the machine
  // has begun without a clock.
  void Add(const SavingsSample& sample);

  std::string Encode() const;
  // kCorruption if the value is malformed, kNeedsNewer if another version of siltfs has written it.
  static Result<SavingsHistory> Decode(std::string_view value);

  bool operator==(const SavingsHistory&) const = default;

 private:
  void DropOne();

  std::vector<SavingsSample> samples_;
};

}  // namespace siltfs
