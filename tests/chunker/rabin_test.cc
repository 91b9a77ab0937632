#include "chunker/rabin.h"

#include "chunker/scan/scan.h"
#include "tests/chunker/reference.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("fingerprints agree with an independent implementation") {
  const RabinTables rabin(TestPolynomial());
  Bytes counting(64);
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<uint8_t>(i);
  Bytes one_and_zeros(64, 0);
  one_and_zeros[0] = 1;  // x^504
  CHECK(rabin.Of(RandomBytes(2024, 64)) == 0x1d1f15c338d8b6);
  CHECK(rabin.Of(Bytes(64, 0xff)) == 0x6d9879d4c4d97);
  CHECK(rabin.Of(one_and_zeros) == 0x17eb4232e19216);
  CHECK(rabin.Of(counting) == 0x44b76cac5cee3);
}

TEST_CASE("the fingerprint of zeros is zero, that of few bytes is their value") {
  const RabinTables rabin(TestPolynomial());
  CHECK(rabin.Of({}) == 0);
  CHECK(rabin.Of(Bytes(64, 0)) == 0);
  CHECK(rabin.Of(Bytes{0x12, 0x34, 0x56}) == 0x123456);
}

TEST_CASE("the rolling fingerprint is the bitwise remainder of the window at every position") {
  const uint64_t seed = GENERATE(1, 2, 3);
  auto drawn = RabinPolynomial::FromRandom(RandomBytes(seed, RabinPolynomial::kRandomBytes));
  REQUIRE_OK(drawn);
  const RabinTables rabin(*drawn);
  const Bytes data = RandomBytes(seed + 100, 8192);
  uint64_t fingerprint = rabin.Of(ByteView(data).first(kWindowSize));
  for (size_t end = kWindowSize;; ++end) {
    const ByteView window = ByteView(data).subspan(end - kWindowSize, kWindowSize);
    REQUIRE(fingerprint == ReferenceFingerprint(window, drawn->value()));
    if (end == data.size()) break;
    fingerprint = rabin.Roll(fingerprint, data[end - kWindowSize], data[end]);
  }
}

TEST_CASE("the fingerprint of a sum is the sum of the fingerprints") {
  const RabinTables rabin(TestPolynomial());
  const Bytes a = RandomBytes(1, 64);
  const Bytes b = RandomBytes(2, 64);
  Bytes sum(64);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] ^ b[i];
  CHECK(rabin.Of(sum) == (rabin.Of(a) ^ rabin.Of(b)));
}

TEST_CASE("the scalar kernel finds the first matching window of a range, both ends included") {
  const CutCondition condition(RabinTables(TestPolynomial()),
                               (uint64_t{1} << 53) - (uint64_t{1} << 47));
  const Bytes data = RandomBytes(5, 4096);
  std::vector<size_t> matches;
  for (size_t end = kWindowSize; end <= data.size(); ++end) {
    const ByteView window = ByteView(data).subspan(end - kWindowSize, kWindowSize);
    if (ReferenceFingerprint(window, kPolynomialValue) >= condition.limit) matches.push_back(end);
  }
  REQUIRE(matches.size() > 20);
  for (size_t first = kWindowSize; first <= data.size(); ++first) {
    const auto next = std::lower_bound(matches.begin(), matches.end(), first);
    const size_t expected = next == matches.end() ? kNoMatch : *next;
    REQUIRE(FindMatchScalar(condition, data.data(), first, data.size()) == expected);
  }
  for (size_t match : matches) {
    CHECK(FindMatchScalar(condition, data.data(), match, match) == match);
    CHECK(FindMatchScalar(condition, data.data(), match + 1, match) == kNoMatch);
  }
}

}  // namespace siltfs::testing
