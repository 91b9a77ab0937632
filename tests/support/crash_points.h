// In which calls the tests let the power fail or the device: in every one, but in builds with a
// sanitizer, which make each run many times slower, only in some. What a crash leaves is looked at
// after every call by the other builds; what a sanitizer looks for is the same after a call's
// neighbours.
#pragma once

#include <cstdint>

namespace siltfs::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr uint64_t kCallStep = 5;
#else
inline constexpr uint64_t kCallStep = 1;
#endif

// The first call to fail; kCallStep on, the next. A test that goes through the calls several times
// has a `variant` for each, so that not the same calls are left out each time.
constexpr uint64_t FirstCall(uint64_t variant) { return 1 + variant % kCallStep; }

}  // namespace siltfs::testing
