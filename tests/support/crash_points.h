// The calls at which tests cut the power or fail the device: all calls in a long run
// (tests/support/test_scale.h), otherwise some. Builds with a sanitizer are many times slower and
// test fewer calls. That is enough: other builds check the state after every call, and a sanitizer
// finds the same errors after neighboring calls.
#pragma once

#include <cstdint>

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

// The distance between failing calls. It is not a multiple of 2 or 3, because tests choose actions
// by call numbers modulo 2 and 3. With a multiple, the tests would run only some of these actions.
inline uint64_t CallStep() { return TestScale() == kWholeScale ? kLongCallStep : kShortCallStep; }

// The distance for tests that are quick enough to try every place in builds without a sanitizer.
inline uint64_t SanitizedStep() { return kIsSanitized ? CallStep() : 1; }

// The first call to fail. A test with several passes over the calls gives each pass a different
// `variant`. Then the passes do not all leave out the same calls.
inline uint64_t FirstCall(uint64_t variant) { return 1 + variant % CallStep(); }

}  // namespace siltfs::testing
