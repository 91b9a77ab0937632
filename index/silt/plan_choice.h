// Chooses the parameters of the model in plan.h within given limits.
//
// Thread-safety: functions only. Units: bytes, entries. Errors: kInvalidArgument for invalid
// arguments; kUnsupported if no choice keeps to the limits, with one sentence that names the
// violated limit.
#pragma once

#include <cstdint>

#include "index/silt/plan.h"
#include "store/base/result.h"

namespace siltfs {

// Limits for the prediction.
struct SiltLimits {
  double memory_bytes = 0;  // at the peak
  double flash_bytes = 0;
  double write_amplification = 5.4;
  double read_amplification = 1.01;
};

enum class SiltPreference : uint8_t {
  kLeastMemory,  // the least memory that keeps to the limits
  kLeastWrites,  // the fewest writes; more memory, up to the limit, is used if it saves writes
};

struct SiltPlan {
  SiltParameters parameters;
  SiltPrediction prediction;
};

// Chooses, of the parameters that keep to the limits, those with the least peak memory or with the
// fewest writes. d is a multiple of a LogStore's entries, and P is a power of two.
Result<SiltPlan> ChooseSiltParameters(const SiltWorkload& workload, const SiltDevice& device,
                                      const SiltLimits& limits, const SiltParticulars& particulars,
                                      SiltPreference preference = SiltPreference::kLeastMemory);

}  // namespace siltfs
