// Polynomials over GF(2), and the polynomial of a store's fingerprints.
//
// A polynomial is a 64-bit number with the coefficient of x^i in bit i; addition is exclusive or.
// The fingerprint (chunker/rabin.h) is a remainder modulo a polynomial. The polynomial must be
// irreducible and drawn at random, so that two different windows rarely have the same fingerprint
// (Rabin 1981, "Fingerprinting by random polynomials"). Each store draws its own polynomial, so
// that its chunk sizes do not reveal known content.
//
// Thread-safety: plain functions and a plain value.
#pragma once

#include <compare>
#include <cstdint>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

namespace gf2 {

// The degree of a; -1 for the zero polynomial.
int Degree(uint64_t a);

// a modulo m; m is not zero.
uint64_t Mod(uint64_t a, uint64_t m);

// a times b modulo m; the degree of m is 1 to 63.
uint64_t MultiplyMod(uint64_t a, uint64_t b, uint64_t m);

// The greatest common divisor; Gcd(0, a) is a.
uint64_t Gcd(uint64_t a, uint64_t b);

// Whether a is irreducible, by Rabin's test, which is exact for every 64-bit polynomial. Constants
// are not irreducible. Time: at most about 64^3 steps.
bool IsIrreducible(uint64_t a);

}  // namespace gf2

// An irreducible polynomial of degree 53. Why 53: a fingerprint is shifted by a byte before its
// reduction, so 64-bit arithmetic limits the degree to 56. 53 is the largest prime up to 56. For a
// prime degree, Rabin's test computes only one greatest common divisor, which excludes factors of
// degree 1. Two different windows have the same fingerprint with a probability below 2^-44.
class RabinPolynomial {
 public:
  static constexpr int kDegree = 53;
  // With this many random bytes FromRandom fails with a probability below 10^-17.
  static constexpr size_t kRandomBytes = 8192;

  // Splits `random` into candidates of 8 bytes, little-endian. In each candidate it sets the
  // coefficients of x^53 and 1, and clears the coefficients above x^53. Returns the first
  // irreducible candidate, so every irreducible polynomial is equally likely. The bytes must be
  // unpredictable (Env::FillRandom). kInvalidArgument if no candidate is irreducible.
  static Result<RabinPolynomial> FromRandom(ByteView random);

  // The polynomial with a value read from a store; kCorruption unless it is irreducible and of
  // degree 53.
  static Result<RabinPolynomial> Parse(uint64_t value);

  uint64_t value() const { return value_; }
  auto operator<=>(const RabinPolynomial&) const = default;

 private:
  explicit RabinPolynomial(uint64_t value) : value_(value) {}

  uint64_t value_;
};

}  // namespace siltfs
