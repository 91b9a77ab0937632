#include "chunker/scan/match_map.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace siltfs {

void MatchMap::Scan(ScanFunction scan, const CutCondition& condition, const uint8_t* data,
                    size_t windows) {
  assert(windows <= kMaxWindows);
  windows_ = windows;
  std::fill_n(words_.begin(), (windows + kWordBits - 1) / kWordBits, 0);
  if (windows >= kFewestWindows) return scan(condition, data, windows, words_.data());
  const size_t last = windows + kWindowSize - 1;
  for (size_t end = kWindowSize; end <= last; ++end) {
    end = FindMatchScalar(condition, data, end, last);
    if (end == kNoMatch) return;
    words_[(end - kWindowSize) / kWordBits] |= uint64_t{1} << ((end - kWindowSize) % kWordBits);
  }
}

size_t MatchMap::FirstFrom(size_t window) const {
  if (window >= windows_) return kNoMatch;
  size_t index = window / kWordBits;
  uint64_t word = words_[index] >> (window % kWordBits) << (window % kWordBits);
  const size_t count = (windows_ + kWordBits - 1) / kWordBits;
  while (word == 0) {
    if (++index == count) return kNoMatch;
    word = words_[index];
  }
  return index * kWordBits + static_cast<size_t>(std::countr_zero(word));
}

}  // namespace siltfs
