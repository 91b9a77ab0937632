// The calls at which tests cut the power or fail the device: all calls in a long run
// (tests/support/test_scale.h), otherwise some. Builds with a sanitizer are many times slower and
// test fewer calls. That is enough: other builds check the state after every call, and a sanitizer
// finds the same errors after neighboring calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "tests/support/test_scale.h"

namespace siltfs::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
inline constexpr uint64_t kLongCallStep = 5;
inline constexpr uint64_t kShortCallStep = 23;
#else
inline constexpr bool kIsSanitized = false;
inline constexpr uint64_t kLongCallStep = 1;
inline constexpr uint64_t kShortCallStep = 5;
#endif

// The distance in a run that repeats a program with sealed segments in memory
// (tests/support/memory_segments.h): the other run of the program tests more calls of the same
// code.
inline constexpr uint64_t kRepeatedCallStep = 17;

// The distance between failing calls. It is not a multiple of 2 or 3, because tests choose actions
// by call numbers modulo 2 and 3. With a multiple, the tests would run only some of these actions.
inline uint64_t CallStep() {
  if (TestScale() == kWholeScale) return kLongCallStep;
  const bool repeated = std::getenv("SILTFS_TEST_SEGMENT_STORE") != nullptr;
  return repeated ? std::max(kRepeatedCallStep, kShortCallStep) : kShortCallStep;
}

// The distance for tests that are quick enough to try every place in builds without a sanitizer.
inline uint64_t SanitizedStep() { return kIsSanitized ? CallStep() : 1; }

// The distance between failing calls in a test that repeats `calls` calls for many engines: some
// engines make many more calls than others, and a short run tests about equally many calls of each.
inline uint64_t CallStepAmong(uint64_t calls) {
  if (TestScale() == kWholeScale) return kLongCallStep;
  constexpr uint64_t kMostCalls = kIsSanitized ? 5 : 16;
  uint64_t step = std::max(kShortCallStep, calls / kMostCalls);
  while (std::gcd(step, 6) != 1) ++step;  // see CallStep
  return step;
}

// The first call to fail, with this distance between the failing calls. The 8 variants are spread
// over the distance.
inline uint64_t FirstCallAmong(uint64_t variant, uint64_t step) {
  return 1 + variant % 8 * step / 8;
}

// The first call to fail. A test with several passes over the calls gives each pass a different
// `variant`. Then the passes do not all leave out the same calls.
inline uint64_t FirstCall(uint64_t variant) { return 1 + variant % CallStep(); }

}  // namespace siltfs::testing
