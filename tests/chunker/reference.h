// A literal bitwise implementation of docs/chunker.md, which gives the expected results of tests.
// This file also makes data for tests.
#pragma once

#include <vector>

#include "chunker/parameters.h"
#include "store/base/bytes.h"
#include "store/base/random.h"

namespace siltfs::testing {

// A widely used irreducible polynomial of degree 53, for example in restic's tests.
inline constexpr uint64_t kPolynomialValue = 0x3DA3358B4DC173;

inline RabinPolynomial TestPolynomial() { return RabinPolynomial::Parse(kPolynomialValue).value(); }

inline ChunkerParameters TestParameters(uint32_t min, uint32_t avg, uint32_t max) {
  return {.min = min, .avg = avg, .max = max, .polynomial = TestPolynomial()};
}

inline Bytes RandomBytes(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  return bytes;
}

// The remainder modulo p of the bytes as one polynomial, computed bit by bit.
inline uint64_t ReferenceFingerprint(ByteView bytes, uint64_t p) {
  uint64_t remainder = 0;
  for (uint8_t byte : bytes) {
    for (int bit = 7; bit >= 0; --bit) {
      remainder = remainder << 1 | (byte >> bit & 1);
      if (remainder >> RabinPolynomial::kDegree & 1) remainder ^= p;
    }
  }
  return remainder;
}

inline std::vector<uint32_t> ReferenceCuts(const ChunkerParameters& parameters, ByteView data) {
  const uint64_t limit =
      (uint64_t{1} << 53) - (uint64_t{1} << 53) / (parameters.avg - parameters.min);
  std::vector<uint32_t> lengths;
  while (!data.empty()) {
    size_t length = std::min<size_t>(parameters.min, data.size());
    while (length < data.size() && length < parameters.max &&
           ReferenceFingerprint(data.subspan(length - 64, 64), parameters.polynomial.value()) <
               limit) {
      ++length;
    }
    lengths.push_back(static_cast<uint32_t>(length));
    data = data.subspan(length);
  }
  return lengths;
}

}  // namespace siltfs::testing
