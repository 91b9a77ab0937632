// Tests of the codes for the trie's nodes. For each node, a code word says how many of its leaves
// are in the left subtree (SILT, section 3.3). The code words are part of the file format.
#include "index/silt/trie_codec.h"

#include <cmath>
#include <string>
#include <vector>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

constexpr size_t kPadding = 32;

// Returns the bits of the code word, in order.
std::string WordOf(TrieOrdering ordering, uint32_t leaves, uint32_t left) {
  BitWriter out;
  TrieCodec::Of(ordering).Write(out, leaves, left);
  const uint64_t bits = out.bits();
  const Bytes bytes = out.Take(kPadding);
  std::string word;
  for (uint64_t i = 0; i < bits; ++i) word += (bytes[i / 8] >> (i % 8) & 1) != 0 ? '1' : '0';
  return word;
}

std::vector<std::string> WordsOf(TrieOrdering ordering, uint32_t leaves) {
  std::vector<std::string> words;
  const uint32_t last = ordering == TrieOrdering::kWeak ? leaves - 1 : leaves;
  for (uint32_t left = 0; left <= last; ++left) words.push_back(WordOf(ordering, leaves, left));
  return words;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("nodes with few leaves have the Huffman code of the binomial distribution") {
  // The weights are 1 2 1, then 1 3 3 1, then 1 4 6 4 1.
  CHECK(WordsOf(TrieOrdering::kExact, 2) == Words{"10", "0", "11"});
  CHECK(WordsOf(TrieOrdering::kExact, 3) == Words{"110", "10", "0", "111"});
  CHECK(WordsOf(TrieOrdering::kExact, 4) == Words{"110", "00", "01", "10", "111"});
}

TEST_CASE("weak ordering has one code word for both one-sided splits") {
  // The weights are 2 2, then 2 3 3, then 2 4 6 4.
  CHECK(WordsOf(TrieOrdering::kWeak, 2) == Words{"0", "1"});
  CHECK(WordsOf(TrieOrdering::kWeak, 3) == Words{"10", "11", "0"});
  CHECK(WordsOf(TrieOrdering::kWeak, 4) == Words{"00", "01", "10", "11"});
}

TEST_CASE("nodes with many leaves have the code of the folded deviation") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  // At 17 leaves the lowest bit of the folded deviation is written as it is. With 8 leaves on the
  // left, the folded deviation is 0: gamma(1), then the bit 0.
  CHECK(WordOf(ordering, 17, 8) == "10");
  CHECK(WordOf(ordering, 17, 7) == "11");  // folded 1
  CHECK(WordOf(ordering, 17, 9) ==
        "01"
        "0"
        "0");  // folded 2 -> gamma(2), 0
  CHECK(WordOf(ordering, 17, 6) ==
        "01"
        "0"
        "1");  // folded 3
  CHECK(WordOf(ordering, 17, 10) ==
        "01"
        "1"
        "0");  // folded 4 -> gamma(3), 0
  // At 1000 leaves the lowest four bits are written as they are. With 500 - 20 leaves on the left,
  // the folded deviation is 39 = 2 * 16 + 7: gamma(3), then the bits of 7.
  CHECK(WordOf(ordering, 1000, 480) ==
        "01"
        "1"
        "1110");
}

TEST_CASE("every split is read back, and no bits beyond it") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  const TrieCodec& codec = TrieCodec::Of(ordering);
  for (uint32_t leaves = 2; leaves <= 300; ++leaves) {
    BitWriter out;
    const uint32_t last = ordering == TrieOrdering::kWeak ? leaves - 1 : leaves;
    for (uint32_t left = 0; left <= last; ++left) codec.Write(out, leaves, left);
    const uint64_t bits = out.bits();
    const Bytes bytes = out.Take(kPadding);
    BitReader in(bytes.data(), 0);
    for (uint32_t left = 0; left <= last; ++left) REQUIRE(codec.Read(in, leaves) == left);
    REQUIRE(in.position() == bits);
  }
}

TEST_CASE("splits of any number of leaves are read back") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  const TrieCodec& codec = TrieCodec::Of(ordering);
  Random random(7);
  struct Split {
    uint32_t leaves;
    uint32_t left;
  };
  std::vector<Split> splits = {{UINT32_MAX, 0}, {UINT32_MAX, UINT32_MAX - 1}, {UINT32_MAX, 1}};
  for (int i = 0; i < 20'000; ++i) {
    const auto leaves = static_cast<uint32_t>(2 + (random.Next() >> (33 + random.Below(31))));
    splits.push_back({leaves, static_cast<uint32_t>(random.Below(leaves))});
  }
  BitWriter out;
  for (const Split& split : splits) codec.Write(out, split.leaves, split.left);
  const Bytes bytes = out.Take(kPadding);
  BitReader in(bytes.data(), 0);
  for (const Split& split : splits) REQUIRE(codec.Read(in, split.leaves) == split.left);
}

TEST_CASE("Huffman's code is complete and wastes less than a tenth of a bit") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  const TrieCodec& codec = TrieCodec::Of(ordering);
  for (uint32_t leaves = 2; leaves <= TrieCodec::kHuffmanLeaves; ++leaves) {
    const uint32_t last = ordering == TrieOrdering::kWeak ? leaves - 1 : leaves;
    double kraft = 0;
    double entropy = 0;
    double expected = 0;
    double weight = 1;
    for (uint32_t left = 0; left <= last; ++left) {
      const bool folded = ordering == TrieOrdering::kWeak && left == 0;
      const double p = weight * (folded ? 2 : 1) / std::pow(2, leaves);
      const unsigned length = codec.CodeOf(leaves, left).length;
      kraft += std::pow(2, -static_cast<double>(length));
      entropy -= p * std::log2(p);
      expected += p * length;
      weight = weight * (leaves - left) / (left + 1);
    }
    INFO(leaves << " leaves: " << expected << " bits, entropy " << entropy);
    CHECK(kraft == 1.0);
    CHECK(expected < entropy + 0.1);
  }
}

TEST_CASE("reading arbitrary bits ends") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  const TrieCodec& codec = TrieCodec::Of(ordering);
  Random random(11);
  Bytes bytes(64);
  for (int i = 0; i < 50'000; ++i) {
    random.Fill(bytes);
    if (random.OneIn(3)) std::fill(bytes.begin(), bytes.begin() + 20, random.OneIn(2) ? 0 : 0xff);
    BitReader in(bytes.data(), random.Below(8));
    const uint64_t from = in.position();
    codec.Read(in, static_cast<uint32_t>(2 + (random.Next() >> (33 + random.Below(31)))));
    REQUIRE(in.position() > from);
    REQUIRE(in.position() <= from + TrieCodec::kMaxBits);
  }
}

}  // namespace siltfs
