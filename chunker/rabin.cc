#include "chunker/rabin.h"

namespace siltfs {

RabinTables::RabinTables(RabinPolynomial polynomial) {
  for (uint64_t t = 0; t < 256; ++t) {
    const uint64_t overflow = t << RabinPolynomial::kDegree;
    reduce_[t] = overflow ^ gf2::Mod(overflow, polynomial.value());
  }
  for (size_t b = 0; b < 256; ++b) {
    uint64_t fingerprint = b;
    for (size_t i = 0; i < kWindowSize; ++i) fingerprint = Push(fingerprint, 0);
    leave_[b] = fingerprint;
  }
}

uint64_t RabinTables::Of(ByteView bytes) const {
  uint64_t fingerprint = 0;
  for (uint8_t byte : bytes) fingerprint = Push(fingerprint, byte);
  return fingerprint;
}

}  // namespace siltfs
