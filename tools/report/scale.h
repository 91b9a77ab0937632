// The axes of plots, and numbers as text.
//
// Thread-safety: pure functions. Units: bytes, counts, seconds since 1970 (UTC).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace siltfs::report {

enum class Quantity { kBytes, kCount, kBytesPerEntry };

struct Tick {
  double value = 0;
  std::string label = {};
};

// Ticks from 0 to `top`, which is at least `greatest`, at round numbers: powers of 1024 times 1, 2
// or 5 for bytes.
struct Axis {
  double top = 1;
  std::vector<Tick> ticks = {};
};
Axis MakeAxis(double greatest, Quantity quantity, int about);

// Ticks at round times within [first, last], at most about `about` of them.
std::vector<Tick> TimeTicks(double first, double last, int about);

// "12", "4.1 k", "2.5 M": at most three digits.
std::string ShortCount(double count);
std::string ShortText(double value, Quantity quantity);
// "2026-11-28"
std::string DateText(double seconds);
// "2026-11-28 16:03 UTC"
std::string TimeText(double seconds);

}  // namespace siltfs::report
