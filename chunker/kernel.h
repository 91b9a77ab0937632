// The search for the next matching window: the inner loop of the chunker, one file per instruction
// set.
//
// A kernel is a pure function of contiguous bytes and carries no state from call to call, which
// works because a fingerprint depends on nothing but its window. All kernels give the same answer
// for the same bytes; kernel_scalar.cc is the reference the others are tested against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chunker/rabin.h"

namespace siltfs {

// When a window matches. Immutable.
struct CutCondition {
  RabinTables rabin;
  uint64_t limit;  // a window matches if its fingerprint is at least this; not 0

  bool Matches(uint64_t fingerprint) const { return fingerprint >= limit; }
};

inline constexpr size_t kNoMatch = SIZE_MAX;

// The smallest `end` in [first, last] such that the window data[end - 64, end) matches, or
// kNoMatch. Reads no byte outside data[first - 64, last). Requires 64 <= first; if first > last
// there is none.
using FindMatchFunction = size_t (*)(const CutCondition& condition, const uint8_t* data,
                                     size_t first, size_t last);

size_t FindMatchScalar(const CutCondition& condition, const uint8_t* data, size_t first,
                       size_t last);

}  // namespace siltfs
