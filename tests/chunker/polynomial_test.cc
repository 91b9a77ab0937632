#include "chunker/polynomial.h"

#include <map>
#include <set>

#include "store/base/random.h"
#include "tests/chunker/reference.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t X(int exponent) { return uint64_t{1} << exponent; }

// The product without reduction; the degrees of a and b add up to at most 63.
uint64_t Multiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  for (int i = 0; i < 64; ++i) {
    if (b >> i & 1) product ^= a << i;
  }
  return product;
}

// The number of irreducible polynomials of a degree over GF(2): the necklace formula, sum over d |
// n of mu(d) 2^(n/d) / n.
uint64_t CountIrreducible(int n) {
  static const std::map<int, int> kMoebius = {{1, 1},  {2, -1}, {3, -1},  {4, 0},
                                              {5, -1}, {6, 1},  {7, -1},  {8, 0},
                                              {9, 0},  {10, 1}, {11, -1}, {12, 0}};
  int64_t sum = 0;
  for (int d = 1; d <= n; ++d) {
    if (n % d == 0) sum += kMoebius.at(d) * (int64_t{1} << (n / d));
  }
  return static_cast<uint64_t>(sum / n);
}

}  // namespace

TEST_CASE("the degree is that of the highest coefficient") {
  CHECK(gf2::Degree(0) == -1);
  CHECK(gf2::Degree(1) == 0);
  CHECK(gf2::Degree(2) == 1);
  CHECK(gf2::Degree(0x11b) == 8);
  CHECK(gf2::Degree(~uint64_t{0}) == 63);
}

TEST_CASE("remainders agree with long division") {
  CHECK(gf2::Mod(0, 0x11b) == 0);
  CHECK(gf2::Mod(0x11b, 0x11b) == 0);
  CHECK(gf2::Mod(0x11a, 0x11b) == 1);
  CHECK(gf2::Mod(0x2b79, 0x11b) == 0xc1);  // FIPS 197 section 4.2
  CHECK(gf2::Mod(~uint64_t{0}, 1) == 0);
  CHECK(gf2::Mod(~uint64_t{0}, X(63)) == X(63) - 1);
}

TEST_CASE("products agree with known finite fields") {
  CHECK(gf2::MultiplyMod(0x57, 0x83, 0x11b) == 0xc1);  // FIPS 197 section 4.2
  CHECK(gf2::MultiplyMod(0x57, 0x13, 0x11b) == 0xfe);  // FIPS 197 section 4.2.1
  CHECK(gf2::MultiplyMod(0x53, 0xca, 0x11b) == 0x01);  // inverses of each other in AES' field
}

TEST_CASE("MultiplyMod equals multiplication and then division") {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t a = random.Next() >> 32;
    const uint64_t b = random.Next() >> 33;
    const uint64_t m = random.Next() >> random.Below(62) | 2;
    CAPTURE(a, b, m);
    REQUIRE(gf2::MultiplyMod(a, b, m) == gf2::Mod(Multiply(a, b), m));
  }
}

TEST_CASE("products modulo polynomials of degree 63 do not overflow") {
  const uint64_t lbfs = 0xbfe6b8a5bf378d83;
  CHECK(gf2::MultiplyMod(X(62), 2, lbfs) == (lbfs ^ X(63)));
}

TEST_CASE("a common factor is the greatest common divisor") {
  CHECK(gf2::Gcd(0, 0x11b) == 0x11b);
  CHECK(gf2::Gcd(0x11b, 0) == 0x11b);
  CHECK(gf2::Gcd(0x11b, 0x11d) == 1);
  CHECK(gf2::Gcd(Multiply(0x11b, 0x83), Multiply(0x11d, 0x83)) == 0x83);
  CHECK(gf2::Gcd(Multiply(X(20) ^ X(3) ^ 1, 0x13), 0x13) == 0x13);
}

TEST_CASE("known irreducible polynomials are found irreducible") {
  const uint64_t known[] = {
      0x2,
      0x3,
      0x7,
      0xb,
      0xd,
      0x13,
      0x19,
      0x1f,
      0x83,              // x^7 + x + 1
      0x11b,             // AES
      0x11d,             // Reed-Solomon codes
      0x104c11db7,       // CRC-32 of Ethernet
      X(31) ^ X(3) ^ 1,  // trinomials, some with Mersenne primes as largest exponents
      X(17) ^ X(3) ^ 1,
      X(47) ^ X(5) ^ 1,
      X(49) ^ X(9) ^ 1,
      X(52) ^ X(3) ^ 1,
      X(60) ^ X(1) ^ 1,
      X(63) ^ X(1) ^ 1,
      X(53) ^ X(6) ^ X(2) ^ X(1) ^ 1,
      kPolynomialValue,
      0xbfe6b8a5bf378d83,  // LBFS
  };
  for (uint64_t polynomial : known) {
    CAPTURE(polynomial);
    CHECK(gf2::IsIrreducible(polynomial));
  }
}

TEST_CASE("known reducible polynomials are found reducible") {
  const uint64_t known[] = {
      0x0,         0x1,  // constants
      0x4,         0x5,   0x6, 0x9, 0xf,
      0x15,         // (x^2 + x + 1)^2
      0x11021,      // CRC-16-CCITT, divisible by x + 1
      0x11edc6f41,  // CRC-32C, divisible by x + 1
      X(53) ^ 1,   X(63),
  };
  for (uint64_t polynomial : known) {
    CAPTURE(polynomial);
    CHECK_FALSE(gf2::IsIrreducible(polynomial));
  }
}

TEST_CASE("no trinomial of a degree divisible by 8 is irreducible (Swan)") {
  for (int degree = 8; degree <= 56; degree += 8) {
    for (int k = 1; k < degree; ++k) {
      CAPTURE(degree, k);
      REQUIRE_FALSE(gf2::IsIrreducible(X(degree) ^ X(k) ^ 1));
    }
  }
}

TEST_CASE(
    "the counts of irreducible polynomials of small degrees agree with the necklace formula") {
  for (int degree = 1; degree <= 12; ++degree) {
    uint64_t count = 0;
    for (uint64_t polynomial = X(degree); polynomial < X(degree + 1); ++polynomial) {
      count += gf2::IsIrreducible(polynomial);
    }
    CAPTURE(degree);
    CHECK(count == CountIrreducible(degree));
  }
}

TEST_CASE("products of large irreducible polynomials are reducible") {
  const uint64_t a = X(25) ^ X(3) ^ 1;
  const uint64_t b = X(28) ^ X(3) ^ 1;
  REQUIRE(gf2::IsIrreducible(a));
  REQUIRE(gf2::IsIrreducible(b));
  CHECK_FALSE(gf2::IsIrreducible(Multiply(a, b)));  // degree 53
  CHECK_FALSE(
      gf2::IsIrreducible(Multiply(X(31) ^ X(3) ^ 1, X(31) ^ X(6) ^ 1)));  // equal degrees: 62
  CHECK_FALSE(gf2::IsIrreducible(Multiply(a, a)));                        // a square
}

TEST_CASE("a store's polynomial is the first irreducible candidate of the random bytes") {
  const Result<RabinPolynomial> drawn =
      RabinPolynomial::FromRandom(RandomBytes(7, RabinPolynomial::kRandomBytes));
  REQUIRE_OK(drawn);
  CHECK(drawn->value() == 0x2904ec7e540319);  // from an independent implementation
}

TEST_CASE("every drawn polynomial is irreducible, of degree 53, and different") {
  std::set<RabinPolynomial> drawn;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    auto polynomial = RabinPolynomial::FromRandom(RandomBytes(seed, RabinPolynomial::kRandomBytes));
    REQUIRE_OK(polynomial);
    REQUIRE_OK(RabinPolynomial::Parse(polynomial->value()));
    drawn.insert(*polynomial);
  }
  CHECK(drawn.size() == 100);
}

TEST_CASE("drawing from bytes without an irreducible candidate fails") {
  REQUIRE_CODE(RabinPolynomial::FromRandom({}), kInvalidArgument);
  REQUIRE_CODE(RabinPolynomial::FromRandom(Bytes(7)), kInvalidArgument);
  REQUIRE_CODE(RabinPolynomial::FromRandom(Bytes(8192, 0)),
               kInvalidArgument);  // x^53 + 1, every time
}

TEST_CASE("a polynomial read from a store must be irreducible and of degree 53") {
  REQUIRE_OK(RabinPolynomial::Parse(kPolynomialValue));
  CHECK(RabinPolynomial::Parse(kPolynomialValue)->value() == kPolynomialValue);
  REQUIRE_CODE(RabinPolynomial::Parse(0), kCorruption);
  REQUIRE_CODE(RabinPolynomial::Parse(0x11b), kCorruption);
  REQUIRE_CODE(RabinPolynomial::Parse(X(52) ^ X(3) ^ 1), kCorruption);
  REQUIRE_CODE(RabinPolynomial::Parse(0xbfe6b8a5bf378d83), kCorruption);
  REQUIRE_CODE(RabinPolynomial::Parse(~uint64_t{0}), kCorruption);
  // An irreducible polynomial has an odd number of coefficients that are 1. If a bit below the
  // leading one is flipped, this number is even, so x + 1 divides the polynomial.
  for (int bit = 0; bit < 53; ++bit)
    REQUIRE_CODE(RabinPolynomial::Parse(kPolynomialValue ^ X(bit)), kCorruption);
}

}  // namespace siltfs::testing
