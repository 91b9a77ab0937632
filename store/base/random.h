// A generator of pseudo-random numbers (xoshiro256**, seeded by splitmix64). One seed gives the
// same numbers on all machines. Use it for tests, benchmarks and choices that need no secrecy.
// Secrets come from Env::FillRandom. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "store/base/bytes.h"

namespace siltfs {

class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t Next();
  // A uniform number in [0, bound); bound > 0.
  uint64_t Below(uint64_t bound);
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  void Fill(MutableByteView out);

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace siltfs
