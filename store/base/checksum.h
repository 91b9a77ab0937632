// The checksum of everything siltfs writes: XXH3-64 with a seed (0 unless a format says otherwise).
// It guards against bit rot and torn writes, not against an adversary.
#pragma once

#include <cstdint>
#include <memory>

#include "store/base/bytes.h"

namespace siltfs {

uint64_t Checksum(ByteView bytes, uint64_t seed = 0);

// The checksum of the concatenation of both.
uint64_t Checksum(ByteView first, ByteView second, uint64_t seed = 0);

// The checksum (seed 0) of bytes added piece by piece.
class StreamingChecksum {
 public:
  StreamingChecksum();
  ~StreamingChecksum();

  void Add(ByteView bytes);
  // The checksum of all bytes added so far; more may follow.
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace siltfs
