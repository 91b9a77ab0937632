// Bytes that no builder wrote: refused, or at least safe to look up in.
#include <algorithm>

#include "trie_keys.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr size_t kHeaderSize = 27;
constexpr size_t kOrderingAt = 1, kSkipBitsAt = 2, kBlockEntriesAt = 3, kEntriesAt = 11,
                 kBucketsAt = 15, kBitsAt = 19;

Result<TrieIndex> Decoded(const std::string& bytes) { return TrieIndex::Decode(AsBytes(bytes)); }

std::string With(std::string bytes, size_t at, uint8_t value) {
  bytes[at] = static_cast<char>(value);
  return bytes;
}

TrieOptions SomeOptions(Random& random) {
  return {.ordering = random.OneIn(2) ? TrieOrdering::kWeak : TrieOrdering::kExact,
          .block_entries = random.OneIn(2) ? 1U : 16U};
}

// Bit flips, cut or grown tails, bytes of other places, and runs of zeros or ones.
void Mutate(std::string& bytes, Random& random) {
  const size_t at = random.Below(bytes.size());
  switch (random.Below(6)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(random.Next());
      break;
    case 2:
      bytes.resize(at + 1);
      break;
    case 3:
      bytes.append(random.Below(20), static_cast<char>(random.Next()));
      break;
    case 4:
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                  std::min<size_t>(bytes.size() - at, random.Below(40)),
                  static_cast<char>(random.OneIn(2) ? 0 : 0xff));
      break;
    default:
      bytes[at] = bytes[random.Below(bytes.size())];
      break;
  }
}

}  // namespace

TEST_CASE("a header that makes no sense is damage") {
  const std::string good = Encoded(BuildTrie(MakeKeys(KeyShape::kUniform, 1000, 1), {}));
  REQUIRE_OK(Decoded(good));
  REQUIRE_CODE(Decoded(""), kCorruption);
  REQUIRE_CODE(Decoded(good.substr(0, kHeaderSize - 1)), kCorruption);
  REQUIRE_CODE(Decoded(With(good, 0, 2)), kCorruption);
  REQUIRE_CODE(Decoded(With(good, kOrderingAt, 2)), kCorruption);
  REQUIRE_CODE(Decoded(With(good, kSkipBitsAt, 33)), kCorruption);
  REQUIRE_CODE(Decoded(With(good, kBlockEntriesAt, 0)), kCorruption);
  REQUIRE_CODE(Decoded(With(good, kEntriesAt, 0)), kCorruption);
  REQUIRE_CODE(Decoded(With(good, kEntriesAt + 3, 0xff)), kCorruption);
  REQUIRE_CODE(Decoded(With(good, kBucketsAt, 0)), kCorruption);
  REQUIRE_CODE(Decoded(With(good, kBucketsAt + 3, 0xff)), kCorruption);
  REQUIRE_CODE(Decoded(With(good, kBitsAt, static_cast<uint8_t>(good[kBitsAt] + 1))), kCorruption);
  REQUIRE_CODE(Decoded(With(good, kBitsAt + 7, 0xff)), kCorruption);
}

TEST_CASE("every length but the right one is damage") {
  const std::string good = Encoded(BuildTrie(MakeKeys(KeyShape::kUniform, 700, 2), {}));
  for (size_t size = 0; size < good.size(); ++size) {
    REQUIRE_CODE(Decoded(good.substr(0, size)), kCorruption);
  }
  REQUIRE_CODE(Decoded(good + std::string(1, '\0')), kCorruption);
}

TEST_CASE("a trie deeper than keys are long is damage") {
  // Two keys that part at the last bit: 159 one-sided nodes and a split, a bit each.
  ChunkName one, other;
  other.bytes.back() = 1;
  std::string good = Encoded(BuildTrie({one, other}, {}));
  REQUIRE(good.size() == kHeaderSize + 12 + 2 * 4 + 20);
  REQUIRE_OK(Decoded(good));
  // The split, of bit 160, becomes one-sided, too.
  REQUIRE_CODE(Decoded(With(good, good.size() - 1, 0)), kCorruption);
  // Eight bits longer, with the split behind.
  std::string deeper = With(good, good.size() - 1, 0) + '\x01';
  deeper[kBitsAt] = static_cast<char>(168);
  deeper[kHeaderSize + 12 + 4 + 2] = static_cast<char>(168);
  REQUIRE_CODE(Decoded(deeper), kCorruption);
}

TEST_CASE("a part with more leaves than the whole is damage") {
  const auto keys = MakeKeys(KeyShape::kUniform, 17, 3);
  std::string bytes = Encoded(BuildTrie(keys, {}));
  REQUIRE_OK(Decoded(bytes));
  const size_t tries = kHeaderSize + 12 + 2 * 4;
  // Folded deviation 62 of 17 leaves: 5 zeros, a one, 5 zeros, a zero.
  bytes[tries] = 0x20;
  bytes[tries + 1] = static_cast<char>(bytes[tries + 1] & 0xf0);
  REQUIRE_CODE(Decoded(bytes), kCorruption);
}

TEST_CASE("mutated bytes are refused or safe to look up in") {
  Random random(GENERATE(range(100, 108)));
  size_t accepted = 0;
  for (int round = 0; round < 1500; ++round) {
    const KeyShape shape = kKeyShapes[random.Below(std::size(kKeyShapes))];
    const auto keys = MakeKeys(shape, 1 + random.Below(600), random.Next());
    std::string bytes = Encoded(BuildTrie(keys, SomeOptions(random)));
    for (uint64_t i = 0; i <= random.Below(3); ++i) Mutate(bytes, random);
    const Result<TrieIndex> index = Decoded(bytes);
    if (!index.ok()) {
      REQUIRE_CODE(index, kCorruption);
      continue;
    }
    ++accepted;
    const uint32_t blocks = std::max<uint32_t>(1, index->blocks());
    for (int i = 0; i < 20; ++i) {
      REQUIRE(index->Lookup(RandomKey(random)) < blocks);
      REQUIRE(index->Lookup(keys[random.Below(keys.size())]) < blocks);
    }
    REQUIRE(Encoded(*index) == bytes);
  }
  CHECK(accepted > 10);
}

}  // namespace siltfs::testing
