// The search for matching windows: the inner loop of the chunker, one file per instruction set.
//
// A kernel is a pure function of contiguous bytes and carries no state from call to call, which
// works because a fingerprint depends on nothing but its window. All kernels find the same windows
// in the same bytes; scan_scalar.cc is the reference the others are tested against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chunker/rabin.h"
#include "chunker/scan/lane_maps.h"

namespace siltfs {

// When a window matches. Immutable.
struct CutCondition {
  CutCondition(const RabinTables& tables, uint64_t match_limit)
      : rabin(tables), lanes(tables), limit(match_limit) {}

  RabinTables rabin;
  LaneMaps lanes;
  uint64_t limit;  // a window matches if its fingerprint is at least this; not 0

  bool Matches(uint64_t fingerprint) const { return fingerprint >= limit; }
};

inline constexpr size_t kNoMatch = SIZE_MAX;

// The smallest `end` in [first, last] such that the window data[end - 64, end) matches, or
// kNoMatch. Reads no byte outside data[first - 64, last). Requires 64 <= first; if first > last
// there is none.
size_t FindMatchScalar(const CutCondition& condition, const uint8_t* data, size_t first,
                       size_t last);

// Marks the windows that match among those that begin at data[0] ... data[windows - 1]: bit i % 64
// of matches[i / 64] is that of the window data[i, i + 64). Reads no byte outside
// data[0, windows + 63). The bits are clear before; windows >= kFewestWindows. Exact, whatever the
// data: the time it takes hardly depends on them.
using ScanFunction = void (*)(const CutCondition& condition, const uint8_t* data, size_t windows,
                              uint64_t* matches);

// For fewer the scalar kernel will do.
inline constexpr size_t kFewestWindows = kWindowSize + 1;

void ScanPortable(const CutCondition& condition, const uint8_t* data, size_t windows,
                  uint64_t* matches);
#if defined(__x86_64__)
void ScanAvx2(const CutCondition& condition, const uint8_t* data, size_t windows,
              uint64_t* matches);
void ScanAvx512Gfni(const CutCondition& condition, const uint8_t* data, size_t windows,
                    uint64_t* matches);
#endif
#if defined(__AARCH64EL__)  // little-endian only
void ScanNeon(const CutCondition& condition, const uint8_t* data, size_t windows,
              uint64_t* matches);
#endif

}  // namespace siltfs
