// The rolling fingerprint as byte operations, for kernels that roll many windows in parallel, with
// one byte of each window per vector register.
//
// A fingerprint F of 53 bits is kept as the 56 bits F x^3, so that its highest bit is the highest
// of seven bytes s[0] ... s[6]. When the window advances by a byte, the state moves up by one byte.
// The byte that overflows, the byte that leaves the window and the byte that enters each add a
// linear map (over GF(2)) to every byte of the state:
//
//     s'[i] = s[i - 1] ^ overflow[i](s[6]) ^ leave[i](out) ^ enter[i](in)      (s[-1] = 0)
//
// where enter[i] is nonzero only for i = 0 and 1: (in x^3) has 11 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chunker/rabin.h"

namespace siltfs {

inline constexpr size_t kLaneStateBytes = 7;
inline constexpr int kLaneStateShift = 8 * kLaneStateBytes - RabinPolynomial::kDegree;
inline constexpr size_t kLaneEnterMaps = 2;

// A linear map of a byte to a byte. Plain arrays, because kernels must not call inline functions of
// the library (lanes.h).
struct ByteMap {
  // The images of 0 ... 15 and of 0, 16, ... 240: one exclusive or gives the image of any byte.
  alignas(16) uint8_t low[16];
  alignas(16) uint8_t high[16];
  // The 8 x 8 matrix in the form of GF2P8AFFINEQB: byte 7 - i selects the argument bits that are
  // XORed to bit i of the image.
  uint64_t matrix;

  uint8_t Of(uint8_t byte) const { return static_cast<uint8_t>(low[byte & 15] ^ high[byte >> 4]); }
};

// Thread-safety: immutable after construction.
struct LaneMaps {
  explicit LaneMaps(const RabinTables& rabin);

  ByteMap overflow[kLaneStateBytes];
  ByteMap leave[kLaneStateBytes];
  ByteMap enter[kLaneEnterMaps];
};

}  // namespace siltfs
