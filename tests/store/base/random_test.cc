#include "store/base/random.h"

#include <array>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

TEST_CASE("the generator is xoshiro256** seeded by splitmix64") {
  // splitmix64 of 0 begins with e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f f88bb8a8724c81ec
  // (published). The first number of xoshiro256** is then rotl(6e789e6aa1b965f4 * 5, 7) * 9.
  REQUIRE(Random(0).Next() == 0x99ec5f36cb75f2b4U);
}

TEST_CASE("equal seeds give equal numbers, different seeds different numbers") {
  Random a(42), b(42), c(43);
  for (int i = 0; i < 100; ++i) {
    const uint64_t number = a.Next();
    REQUIRE(b.Next() == number);
    REQUIRE(c.Next() != number);
  }
}

TEST_CASE("bounded numbers are uniform below the bound") {
  Random random(1);
  std::array<int, 10> seen{};
  for (int i = 0; i < 10'000; ++i) ++seen.at(random.Below(10));
  for (int count : seen) REQUIRE((count > 800 && count < 1'200));
  REQUIRE(random.Below(1) == 0);
}

TEST_CASE("filling uses the numbers' bytes in order and drops the rest of the last number") {
  Random filler(5), numbers(5);
  Bytes bytes(11);
  filler.Fill(bytes);
  const uint64_t first = numbers.Next(), second = numbers.Next();
  for (size_t i = 0; i < 8; ++i) REQUIRE(bytes[i] == static_cast<uint8_t>(first >> (8 * i)));
  for (size_t i = 0; i < 3; ++i) REQUIRE(bytes[8 + i] == static_cast<uint8_t>(second >> (8 * i)));
  REQUIRE(filler.Next() == numbers.Next());
}

}  // namespace
}  // namespace siltfs
