// The matching windows of a range of data, found by one scan of a kernel.
//
// Thread-safety: none. Memory: 8.2 KB, in the object.
#pragma once

#include <array>

#include "chunker/scan/scan.h"

namespace siltfs {

class MatchMap {
 public:
  // With this many windows, the ranges of 64 lanes do not overlap: a range (lanes.h) has one window
  // more than a multiple of 64.
  static constexpr size_t kMaxWindows = 64 * (16 * 64 + 1);

  // Scans the windows that begin at data[0] ... data[windows - 1], and replaces the previous
  // result. `windows` is at most kMaxWindows. Reads no byte outside data[0, windows + 63).
  void Scan(ScanFunction scan, const CutCondition& condition, const uint8_t* data, size_t windows);

  size_t windows() const { return windows_; }

  // The first matching window at or after `window`; kNoMatch if there is none.
  size_t FirstFrom(size_t window) const;

 private:
  static constexpr size_t kWordBits = 64;

  size_t windows_ = 0;
  std::array<uint64_t, kMaxWindows / kWordBits> words_;  // only the first windows_ bits are valid
};

}  // namespace siltfs
