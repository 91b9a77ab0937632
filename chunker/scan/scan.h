// The search for matching windows: the inner loop of the chunker, one file per instruction set.
//
// A kernel is a pure function of contiguous bytes without state between calls, because a
// fingerprint depends only on its window. All kernels find the same windows in the same bytes;
// scan_scalar.cc is the reference that the others are tested against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chunker/rabin.h"
#include "chunker/scan/lane_maps.h"

namespace siltfs {

// The condition for a matching window. Immutable.
struct CutCondition {
  CutCondition(const RabinTables& tables, uint64_t match_limit)
      : rabin(tables), lanes(tables), limit(match_limit) {}

  RabinTables rabin;
  LaneMaps lanes;
  uint64_t limit;  // a window matches if its fingerprint is at least this; not 0

  bool Matches(uint64_t fingerprint) const { return fingerprint >= limit; }
};

inline constexpr size_t kNoMatch = SIZE_MAX;

// The smallest `end` in [first, last] such that the window data[end - 64, end) matches. kNoMatch if
// there is none, or if first > last. Reads no byte outside data[first - 64, last). Requires 64 <=
// first.
size_t FindMatchScalar(const CutCondition& condition, const uint8_t* data, size_t first,
                       size_t last);

// Sets a bit for each matching window among those that begin at data[0] ... data[windows - 1]: bit
// i % 64 of matches[i / 64] belongs to the window data[i, i + 64). Reads no byte outside data[0,
// windows + 63). Requires cleared bits and windows >= kFewestWindows. The result is exact for all
// data; the time hardly depends on the data.
using ScanFunction = void (*)(const CutCondition& condition, const uint8_t* data, size_t windows,
                              uint64_t* matches);

// For fewer windows use the scalar kernel.
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
