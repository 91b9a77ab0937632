#include "tools/bench/memory_meter.h"

#include <algorithm>

#include "store/env/resources.h"
#include "tools/bench/bench_threads.h"

namespace siltfs {
namespace {

uint64_t Resident() {
  const auto bytes = ResidentBytes();
  Require(bytes.status());
  return *bytes;
}

}  // namespace

MemoryMeter::MemoryMeter() : baseline_(Resident()), has_peak_(ResetPeakResidentBytes().ok()) {}

uint64_t MemoryMeter::Growth() const {
  const uint64_t now = Resident();
  return now - std::min(now, baseline_);
}

uint64_t MemoryMeter::PeakGrowth() {
  uint64_t growth = Growth();
  if (!has_peak_) return growth;
  const auto peak = PeakResidentBytes();
  Require(peak.status());
  Require(ResetPeakResidentBytes());
  return std::max(*peak - std::min(*peak, baseline_), growth);
}

}  // namespace siltfs
