// The part of each campaign that a test run executes. A campaign is a test with many seeds or
// places. A normal run executes a tenth of it, and tools/run-tests --long executes all of it.
//
// Thread-safety: the functions may be called from any thread while no thread changes the
// environment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace siltfs::testing {

inline constexpr uint64_t kWholeScale = 10;

// In tenths, 1 to 10: the environment variable SILTFS_TEST_SCALE, by default 1.
inline uint64_t TestScale() {
  const char* text = std::getenv("SILTFS_TEST_SCALE");
  return text == nullptr ? 1
                         : std::clamp<uint64_t>(std::strtoull(text, nullptr, 10), 1, kWholeScale);
}

// The number of repetitions in this run if a whole campaign has `whole`; at least 1.
inline uint64_t Share(uint64_t whole) {
  return std::max<uint64_t>(1, whole * TestScale() / kWholeScale);
}

}  // namespace siltfs::testing
