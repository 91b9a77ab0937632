// The reference kernel: two table lookups and a comparison per byte; each step waits for the
// previous one.
#include <cassert>

#include "chunker/scan/scan.h"

namespace siltfs {

size_t FindMatchScalar(const CutCondition& condition, const uint8_t* data, size_t first,
                       size_t last) {
  assert(first >= kWindowSize);
  if (first > last) return kNoMatch;
  uint64_t fingerprint = condition.rabin.Of({data + first - kWindowSize, kWindowSize});
  for (size_t end = first;; ++end) {
    if (condition.Matches(fingerprint)) return end;
    if (end == last) return kNoMatch;
    fingerprint = condition.rabin.Roll(fingerprint, data[end - kWindowSize], data[end]);
  }
}

}  // namespace siltfs
