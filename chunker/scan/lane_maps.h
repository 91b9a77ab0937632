// The rolling fingerprint as byte operations, for kernels that roll many windows in parallel. A
// vector register of such a kernel holds one byte of each window.
//
// A fingerprint F has 53 bits. The kernels keep it as the 56 bits of F x^3, in seven bytes s[0] ...
// s[6]. So the highest bit of F is the highest bit of s[6]. When the window advances by a byte, the
// state moves up by one byte. Each new byte s'[i] of the state also depends on three other bytes:
// the byte that overflows, the byte that leaves the window, and the byte that enters it. Each of
// them contributes its image under a map that is linear over GF(2):
//
//     s'[i] = s[i - 1] ^ overflow[i](s[6]) ^ leave[i](out) ^ enter[i](in)      (s[-1] = 0)
//
// enter[i] is nonzero only for i = 0 and 1, because the product in * x^3 has 11 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chunker/rabin.h"

namespace siltfs {

inline constexpr size_t kLaneStateBytes = 7;
inline constexpr int kLaneStateShift = 8 * kLaneStateBytes - RabinPolynomial::kDegree;
inline constexpr size_t kLaneEnterMaps = 2;

// A linear map of a byte to a byte. It consists of plain arrays, because kernels must not call
// inline functions of the library (lanes.h).
struct ByteMap {
  // `low` has the images of 0 ... 15, `high` has the images of 0, 16, ... 240. The image of any
  // byte is the exclusive or of one entry of `low` and one entry of `high`.
  alignas(16) uint8_t low[16];
  alignas(16) uint8_t high[16];
  // The map as an 8 x 8 matrix in the form of GF2P8AFFINEQB: byte 7 - i selects the argument bits
  // that are XORed to bit i of the image.
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
