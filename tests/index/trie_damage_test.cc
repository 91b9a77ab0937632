// Bytes that no builder wrote are refused, or lookups in them are at least safe.
#include <algorithm>

#include "tests/support/catch.h"
#include "trie_keys.h"

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

struct Split {
  uint32_t leaves;
  uint32_t left;
};

// Returns an index of one bucket with these splits, which may be invalid.
std::string Forged(const TrieOptions& options, uint32_t entries, const std::vector<Split>& splits) {
  BitWriter tries;
  for (const Split& split : splits) {
    TrieCodec::Of(options.ordering).Write(tries, split.leaves, split.left);
  }
  const uint64_t bits = tries.bits();
  Encoder out;
  out.U8(1).U8(static_cast<uint8_t>(options.ordering)).U8(static_cast<uint8_t>(options.skip_bits));
  out.U32(options.block_entries).U32(options.bucket_entries);
  out.U32(entries).U32(1).U64(bits);
  TrieBuckets buckets;
  buckets.Append({});
  buckets.Append({.rank = entries, .bit = bits});
  buckets.Encode(out);
  return out.Raw(tries.Take(0)).Take();
}

TrieOptions SomeOptions(Random& random) {
  return {.ordering = random.OneIn(2) ? TrieOrdering::kWeak : TrieOrdering::kExact,
          .block_entries = random.OneIn(2) ? 1U : 16U};
}

// Applies bit flips, cut or extended tails, bytes copied from other places, and runs of zeros or
// ones.
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

TEST_CASE("an invalid header is damage") {
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

TEST_CASE("every wrong length is damage") {
  const std::string good = Encoded(BuildTrie(MakeKeys(KeyShape::kUniform, 700, 2), {}));
  for (size_t size = 0; size < good.size(); ++size) {
    REQUIRE_CODE(Decoded(good.substr(0, size)), kCorruption);
  }
  REQUIRE_CODE(Decoded(good + std::string(1, '\0')), kCorruption);
}

TEST_CASE("a trie deeper than keys are long is damage") {
  const auto parting_at = [](unsigned depth) {
    std::vector<Split> splits(depth, Split{.leaves = 2, .left = 0});
    splits.push_back({.leaves = 2, .left = 1});
    return splits;
  };
  REQUIRE_OK(Decoded(Forged({}, 2, parting_at(159))));
  REQUIRE_CODE(Decoded(Forged({}, 2, parting_at(160))), kCorruption);
  REQUIRE_CODE(Decoded(Forged({}, 2, parting_at(161))), kCorruption);
  REQUIRE_OK(Decoded(Forged({.skip_bits = 10}, 2, parting_at(149))));
  REQUIRE_CODE(Decoded(Forged({.skip_bits = 10}, 2, parting_at(150))), kCorruption);
}

TEST_CASE("a part with more leaves than the whole is damage") {
  const TrieOptions weak{.ordering = TrieOrdering::kWeak, .block_entries = 16};
  const TrieOptions exact{.ordering = TrieOrdering::kExact, .block_entries = 16};
  REQUIRE_OK(Decoded(Forged(weak, 17, {{17, 16}})));
  // The root has 17 leaves and claims 18 on its left, which leaves -1 on its right. The left side
  // is split into 16 and 2 leaves. These parts need no further splits, because each of them lies in
  // one block. A part of -1 leaves would need no split, either. So only a check of the counts can
  // find this damage.
  REQUIRE_CODE(Decoded(Forged(weak, 17, {{17, 18}, {18, 16}})), kCorruption);
  REQUIRE_CODE(Decoded(Forged(exact, 17, {{17, 18}, {18, 16}})), kCorruption);
  // Weak ordering has only one way to write a one-sided split: with 0 on the left.
  REQUIRE_OK(Decoded(Forged(weak, 17, {{17, 0}, {17, 16}})));
  REQUIRE_CODE(Decoded(Forged(weak, 17, {{17, 17}, {17, 16}})), kCorruption);
  REQUIRE_OK(Decoded(Forged(exact, 17, {{17, 17}, {17, 16}})));
}

TEST_CASE("a trie shorter or longer than its bucket is damage") {
  const std::vector<Split> splits = {{3, 1}, {2, 1}};
  REQUIRE_OK(Decoded(Forged({}, 3, splits)));
  REQUIRE_CODE(Decoded(Forged({}, 3, {{3, 1}, {2, 1}, {2, 1}})), kCorruption);
  REQUIRE_CODE(Decoded(Forged({}, 3, {{3, 1}})), kCorruption);
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
