// The rolling Rabin fingerprint of the last 64 bytes of a stream.
//
// A window of bytes b0 … b63 (b0 is the oldest) stands for a polynomial of degree below 512. Its
// coefficients are the bits of the bytes, from b0 on, and in each byte from the most significant
// bit on. The fingerprint is the remainder modulo the store's polynomial, a number below 2^53. No
// bits are added or inverted: a window of zeros has fingerprint 0. An entering byte costs a shift
// by 8, a table lookup and an exclusive or; a leaving byte costs another lookup (Rabin 1981; Broder
// 1993, "Some applications of Rabin's fingerprinting method").
//
// Thread-safety: immutable after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "chunker/polynomial.h"
#include "store/base/bytes.h"

namespace siltfs {

// Shorter windows repeat too often in text and code, which makes chunks too long. Longer windows
// would cost more in a kernel that computes each fingerprint from its whole window instead of
// rolling it (docs/chunker.md compares sizes).
inline constexpr size_t kWindowSize = 64;

class RabinTables {
 public:
  explicit RabinTables(RabinPolynomial polynomial);

  // The fingerprint of the window extended by the byte `in`.
  uint64_t Push(uint64_t fingerprint, uint8_t in) const {
    return (fingerprint << 8 | in) ^ reduce_[fingerprint >> (RabinPolynomial::kDegree - 8)];
  }

  // The fingerprint after the window has moved by one byte: `out` was its first byte, `in` is its
  // new last byte.
  uint64_t Roll(uint64_t fingerprint, uint8_t out, uint8_t in) const {
    return Push(fingerprint, in) ^ leave_[out];
  }

  // The fingerprint of any number of bytes.
  uint64_t Of(ByteView bytes) const;

 private:
  // reduce_[t] is XORed to a shifted fingerprint with overflow byte t: it reduces the fingerprint
  // and clears that byte.
  std::array<uint64_t, 256> reduce_;
  // leave_[b] is b times x^512: the contribution of byte b after 64 more bytes.
  std::array<uint64_t, 256> leave_;
};

}  // namespace siltfs
