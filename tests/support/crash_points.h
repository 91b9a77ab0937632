// In which calls the tests let the power fail or the device: in every one if a run is long
// (tests/support/test_scale.h), else in some. In builds with a sanitizer, which make each run many
// times slower, in fewer: what a crash leaves is looked at after every call by the other builds;
// what a sanitizer looks for is the same after a call's neighbours.
#pragma once

#include <cstdint>

#include "tests/support/test_scale.h"

namespace siltfs::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr uint64_t kLongCallStep = 5;
inline constexpr uint64_t kShortCallStep = 23;
#else
inline constexpr uint64_t kLongCallStep = 1;
inline constexpr uint64_t kShortCallStep = 5;
#endif

// From a call that fails to the next one. No multiple of 2 or 3, by which tests choose what happens
// in a call or after it.
inline uint64_t CallStep() { return TestScale() == kWholeScale ? kLongCallStep : kShortCallStep; }

// The first call to fail. A test that goes through the calls several times has a `variant` for
// each, so that not the same calls are left out each time.
inline uint64_t FirstCall(uint64_t variant) { return 1 + variant % CallStep(); }

}  // namespace siltfs::testing
