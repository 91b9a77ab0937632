#include "tools/bench/update_order.h"

#include <numeric>

#include "tools/bench/index_keys.h"

namespace siltfs {
namespace {

uint64_t MultiplyModulo(uint64_t a, uint64_t b, uint64_t modulus) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(static_cast<Wide>(a) * b % modulus);
}

// Returns a number without a common divisor with `entries`.
uint64_t FactorFor(uint64_t entries, uint64_t seed) {
  uint64_t factor = MixNumber(seed) % entries;
  while (std::gcd(factor, entries) != 1) factor = (factor + 1) % entries;
  return factor;
}

// Returns the x with a * x = 1 modulo `modulus` (extended Euclidean algorithm).
uint64_t InverseOf(uint64_t a, uint64_t modulus) {
  int64_t x = 0;
  int64_t next_x = 1;
  auto rest = static_cast<int64_t>(modulus);
  auto next_rest = static_cast<int64_t>(a % modulus);
  while (next_rest != 0) {
    const int64_t quotient = rest / next_rest;
    const int64_t following_x = x - quotient * next_x;
    x = next_x;
    next_x = following_x;
    const int64_t following_rest = rest - quotient * next_rest;
    rest = next_rest;
    next_rest = following_rest;
  }
  return static_cast<uint64_t>(x < 0 ? x + static_cast<int64_t>(modulus) : x);
}

}  // namespace

UpdateOrder::UpdateOrder(uint64_t entries, uint64_t seed)
    : entries_(entries),
      factor_(FactorFor(entries, seed)),
      inverse_(InverseOf(factor_, entries)),
      offset_(MixNumber(seed + 1) % entries) {}

uint64_t UpdateOrder::NumberOf(uint64_t update) const {
  return (MultiplyModulo(factor_, update % entries_, entries_) + offset_) % entries_;
}

uint64_t UpdateOrder::PlaceOf(uint64_t number) const {
  return MultiplyModulo(inverse_, (number + entries_ - offset_) % entries_, entries_);
}

}  // namespace siltfs
