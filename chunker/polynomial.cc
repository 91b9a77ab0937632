#include "chunker/polynomial.h"

#include <bit>
#include <cassert>
#include <string>

#include "store/base/coding.h"

namespace siltfs {

namespace gf2 {

namespace {

// x^(2^n) modulo m.
uint64_t XToThePowerOfTwoToThe(int n, uint64_t m) {
  uint64_t power = Mod(2, m);
  for (int i = 0; i < n; ++i) power = MultiplyMod(power, power, m);
  return power;
}

}  // namespace

int Degree(uint64_t a) { return std::bit_width(a) - 1; }

uint64_t Mod(uint64_t a, uint64_t m) {
  assert(m != 0);
  const int degree = Degree(m);
  for (int excess = Degree(a) - degree; excess >= 0; excess = Degree(a) - degree) a ^= m << excess;
  return a;
}

uint64_t MultiplyMod(uint64_t a, uint64_t b, uint64_t m) {
  const int degree = Degree(m);
  assert(degree >= 1);
  const uint64_t carry = uint64_t{1} << degree;
  uint64_t product = 0;
  for (a = Mod(a, m), b = Mod(b, m); b != 0; b >>= 1) {
    if (b & 1) product ^= a;
    a <<= 1;
    if (a & carry) a ^= m;
  }
  return product;
}

uint64_t Gcd(uint64_t a, uint64_t b) {
  while (b != 0) {
    const uint64_t remainder = Mod(a, b);
    a = b;
    b = remainder;
  }
  return a;
}

// x^(2^n) - x is the product of all irreducible polynomials with degrees that divide n. If a
// polynomial of degree d divides x^(2^d) - x, it is a product of different irreducible polynomials
// with degrees that divide d. If it also shares no factor with x^(2^(d/q)) - x for any prime q
// dividing d, none of these degrees is smaller than d. So the polynomial is irreducible.
bool IsIrreducible(uint64_t a) {
  const int degree = Degree(a);
  if (degree < 1) return false;
  const uint64_t x = Mod(2, a);
  if (XToThePowerOfTwoToThe(degree, a) != x) return false;
  int rest = degree;
  for (int prime = 2; prime <= rest; ++prime) {
    if (rest % prime != 0) continue;
    while (rest % prime == 0) rest /= prime;
    if (Gcd(a, XToThePowerOfTwoToThe(degree / prime, a) ^ x) != 1) return false;
  }
  return true;
}

}  // namespace gf2

Result<RabinPolynomial> RabinPolynomial::FromRandom(ByteView random) {
  constexpr uint64_t kLeading = uint64_t{1} << kDegree;
  Decoder candidates(random);
  while (candidates.remaining() >= 8) {
    // Bit 0 must be set, because x divides every polynomial without a constant term.
    const uint64_t candidate = (candidates.U64() & (kLeading - 1)) | kLeading | 1;
    if (gf2::IsIrreducible(candidate)) return RabinPolynomial(candidate);
  }
  return Status(StatusCode::kInvalidArgument, "no irreducible polynomial among " +
                                                  std::to_string(random.size() / 8) +
                                                  " random candidates");
}

Result<RabinPolynomial> RabinPolynomial::Parse(uint64_t value) {
  if (gf2::Degree(value) != kDegree) {
    return Status(StatusCode::kCorruption, "the chunker's polynomial is of degree " +
                                               std::to_string(gf2::Degree(value)) + ", not " +
                                               std::to_string(kDegree));
  }
  if (!gf2::IsIrreducible(value)) {
    return Status(StatusCode::kCorruption, "the chunker's polynomial is reducible");
  }
  return RabinPolynomial(value);
}

}  // namespace siltfs
