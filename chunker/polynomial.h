// Polynomials over GF(2), and the one that a store fingerprints its data with.
//
// A polynomial is a 64-bit number whose bit i is the coefficient of x^i; adding is exclusive or.
// The fingerprint (chunker/rabin.h) is a remainder modulo an irreducible polynomial, because only
// then is every polynomial of that degree equally unlikely to make two different windows collide
// (Rabin 1981, "Fingerprinting by random polynomials"). Each store draws its own, so that the sizes
// of its chunks do not reveal what known content it holds.
//
// Thread-safety: plain functions and a plain value.
#pragma once

#include <compare>
#include <cstdint>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

namespace gf2 {

// Of the zero polynomial: -1.
int Degree(uint64_t a);

// a modulo m; m is not zero.
uint64_t Mod(uint64_t a, uint64_t m);

// a times b modulo m; the degree of m is 1 to 63.
uint64_t MultiplyMod(uint64_t a, uint64_t b, uint64_t m);

// The greatest common divisor; that of zero and a is a.
uint64_t Gcd(uint64_t a, uint64_t b);

// Rabin's test, exact for every 64-bit polynomial. Constants are not irreducible. Time: some 64^3
// steps at most.
bool IsIrreducible(uint64_t a);

}  // namespace gf2

// An irreducible polynomial of degree 53. Why 53: a fingerprint is shifted by a byte before it is
// reduced, so with 64-bit arithmetic the degree may be at most 56; 53 is the largest prime up to
// there, which leaves Rabin's test one trivial divisor condition; and two different windows collide
// with probability below 2^-44.
class RabinPolynomial {
 public:
  static constexpr int kDegree = 53;
  // With this many random bytes FromRandom finds none less than once in 10^17 times.
  static constexpr size_t kRandomBytes = 8192;

  // Takes `random` as candidates of 8 bytes each, little-endian, and returns the first that is
  // irreducible once its coefficients of x^53 and 1 are set and those above cleared: every
  // irreducible polynomial is equally likely. The bytes must be unpredictable (Env::FillRandom).
  // kInvalidArgument if no candidate will do.
  static Result<RabinPolynomial> FromRandom(ByteView random);

  // A value read from a store; kCorruption unless it is irreducible and of degree 53.
  static Result<RabinPolynomial> Parse(uint64_t value);

  uint64_t value() const { return value_; }
  auto operator<=>(const RabinPolynomial&) const = default;

 private:
  explicit RabinPolynomial(uint64_t value) : value_(value) {}

  uint64_t value_;
};

}  // namespace siltfs
