// How much of the campaigns a run makes. A campaign is a test that does one thing with many seeds,
// or at many places; each change makes a tenth of it, and tools/run-tests --long all.
//
// Thread-safety: functions only, safe to call from any thread that does not change the environment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace siltfs::testing {

inline constexpr uint64_t kWholeScale = 10;

// Tenths, 1 to 10: SILTFS_TEST_SCALE of the environment, which is 1 if it is not set.
inline uint64_t TestScale() {
  const char* text = std::getenv("SILTFS_TEST_SCALE");
  return text == nullptr ? 1
                         : std::clamp<uint64_t>(std::strtoull(text, nullptr, 10), 1, kWholeScale);
}

// Of what a whole campaign does so often, how much this run does; at least once.
inline uint64_t Share(uint64_t whole) {
  return std::max<uint64_t>(1, whole * TestScale() / kWholeScale);
}

}  // namespace siltfs::testing
