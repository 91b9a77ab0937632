// SILT, section 3.3: the trie leads every key to its place, in every mode, with few bits.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tests/support/catch.h"
#include "trie_keys.h"

namespace siltfs::testing {
namespace {

constexpr TrieOrdering kOrderings[] = {TrieOrdering::kExact, TrieOrdering::kWeak};

void RequireAllFound(const TrieIndex& index, const std::vector<ChunkName>& keys) {
  for (size_t rank = 0; rank < keys.size(); ++rank) {
    const uint32_t found = index.Lookup(keys[rank]);
    if (found != rank / index.options().block_entries) {  // REQUIRE is slow
      INFO("key " << rank << " of " << keys.size());
      REQUIRE(found == rank / index.options().block_entries);
    }
  }
}

void RequireInside(const TrieIndex& index, uint64_t seed) {
  Random random(seed);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(index.Lookup(RandomKey(random)) < std::max<uint32_t>(1, index.blocks()));
  }
}

double BitsPerKey(const TrieIndex& index) {
  return 8.0 * static_cast<double>(index.memory_bytes()) / index.entries();
}

}  // namespace

TEST_CASE("every key is led to its block, for all keys and modes") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  const KeyShape shape = static_cast<KeyShape>(GENERATE(range(0, 5)));
  const size_t count = GENERATE(0, 1, 2, 3, 127, 128, 129, 1000, 100'000);
  const uint32_t block_entries = GENERATE(1, 2, 100, 128);
  if (count == 100'000 && shape != KeyShape::kUniform && shape != KeyShape::kClustered) return;
  INFO(NameOf(shape) << ", " << count << " keys, " << block_entries << " a block");
  const auto keys = MakeKeys(shape, count, 1 + count);
  const TrieIndex index = BuildTrie(keys, {.ordering = ordering, .block_entries = block_entries});
  REQUIRE(index.entries() == keys.size());
  REQUIRE(index.blocks() == (keys.size() + block_entries - 1) / block_entries);
  RequireAllFound(index, keys);
  RequireInside(index, count);

  auto decoded = TrieIndex::Decode(AsBytes(Encoded(index)));
  REQUIRE_OK(decoded);
  REQUIRE(decoded->options() == index.options());
  RequireAllFound(*decoded, keys);
  REQUIRE(Encoded(*decoded) == Encoded(index));
}

TEST_CASE("every key is led to its block, for all block borders") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  for (uint32_t block_entries = 1; block_entries <= 70; ++block_entries) {
    for (const size_t count : {63U, 64U, 65U, 700U}) {
      const auto keys = MakeKeys(KeyShape::kUniform, count, block_entries);
      RequireAllFound(BuildTrie(keys, {.ordering = ordering, .block_entries = block_entries}),
                      keys);
    }
  }
}

TEST_CASE("every key of one partition is led to its block") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  const unsigned skip_bits = GENERATE(1, 5, 8, 31, 32);
  const uint32_t block_entries = GENERATE(1, 128);
  for (const KeyShape shape : kKeyShapes) {
    const auto keys = MakeKeys(shape, 2000, skip_bits, skip_bits);
    const TrieIndex index = BuildTrie(
        keys, {.ordering = ordering, .block_entries = block_entries, .skip_bits = skip_bits});
    INFO(NameOf(shape));
    RequireAllFound(index, keys);
    RequireInside(index, skip_bits);
    REQUIRE_OK(TrieIndex::Decode(AsBytes(Encoded(index))));
    // The bits that all keys share cost nothing; one-sided nodes for these bits would cost space.
    if (shape == KeyShape::kUniform && block_entries == 1) CHECK(BitsPerKey(index) < 3.8);
  }
}

TEST_CASE("the number of keys may differ from the expected one") {
  const auto keys = MakeKeys(KeyShape::kUniform, 20'000, 3);
  for (const uint64_t expected : {uint64_t{0}, uint64_t{1}, uint64_t{900'000}}) {
    TrieBuilder builder({.block_entries = 1}, expected);
    for (const ChunkName& key : keys) builder.Add(key);
    const Result<TrieIndex> index = builder.Finish();
    REQUIRE_OK(index);
    RequireAllFound(*index, keys);
    REQUIRE_OK(TrieIndex::Decode(AsBytes(Encoded(*index))));
  }
}

TEST_CASE("all keys may be in one bucket of many") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  const uint32_t block_entries = GENERATE(1, 128);
  // The buckets after the full one begin 70,000 ranks and more than 2^16 bits after the first
  // bucket of their group. These distances do not fit in 16 bits.
  auto keys = MakeKeys(KeyShape::kNumbers, 70'000, 4);
  TrieBuilder builder({.ordering = ordering, .block_entries = block_entries, .bucket_entries = 100},
                      1'000'000);
  for (const ChunkName& key : keys) builder.Add(key);
  const Result<TrieIndex> index = builder.Finish();
  REQUIRE_OK(index);
  for (size_t rank = 0; rank < keys.size(); rank += 997) {
    REQUIRE(index->Lookup(keys[rank]) == rank / block_entries);
  }
  REQUIRE(index->Lookup(keys.back()) == (keys.size() - 1) / block_entries);
  REQUIRE_OK(TrieIndex::Decode(AsBytes(Encoded(*index))));
}

TEST_CASE("keys that differ only in their last bit are distinguished") {
  const TrieOrdering ordering = GENERATE(TrieOrdering::kExact, TrieOrdering::kWeak);
  const unsigned skip_bits = GENERATE(0, 32);
  Random random(5);
  std::vector<ChunkName> keys;
  for (int i = 0; i < 1000; ++i) {
    ChunkName key = RandomKey(random);
    for (size_t byte = 0; byte < skip_bits / 8; ++byte) key.bytes[byte] = 0x5a;
    key.bytes.back() &= 0xfe;
    keys.push_back(key);
    key.bytes.back() |= 1;
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  RequireAllFound(BuildTrie(keys, {.ordering = ordering, .skip_bits = skip_bits}), keys);
}

TEST_CASE("with exact ordering an absent key is led to a neighbor") {
  const auto keys = MakeKeys(KeyShape::kUniform, 3000, 6);
  const TrieIndex index = BuildTrie(keys, {.ordering = TrieOrdering::kExact});
  Random random(6);
  for (int i = 0; i < 3000; ++i) {
    const ChunkName key = RandomKey(random);
    const auto after =
        static_cast<uint32_t>(std::upper_bound(keys.begin(), keys.end(), key) - keys.begin());
    const uint32_t found = index.Lookup(key);
    INFO(found << ", the key would stand before " << after);
    REQUIRE((found == after || found + 1 == after));
  }
}

TEST_CASE("a builder refuses keys that are out of order or of another partition") {
  const auto keys = MakeKeys(KeyShape::kUniform, 1000, 8);
  for (const unsigned skip_bits : {0U, 4U}) {
    for (const size_t wrong : {size_t{1}, size_t{500}, size_t{999}}) {
      TrieBuilder backwards({.skip_bits = skip_bits}, keys.size());
      TrieBuilder twice({.skip_bits = skip_bits}, keys.size());
      for (size_t i = 0; i < keys.size(); ++i) {
        ChunkName key = keys[i];
        key.bytes[0] = skip_bits == 4 ? key.bytes[0] >> 4 : key.bytes[0];
        if (i == wrong) {
          backwards.Add(ChunkName{});
          twice.Add(key);
        }
        if (i < 100 || skip_bits == 0) backwards.Add(key);
        if (i < 100 || skip_bits == 0) twice.Add(key);
      }
      REQUIRE_CODE(backwards.Finish(), kInvalidArgument);
      REQUIRE_CODE(twice.Finish(), kInvalidArgument);
    }
  }
  TrieBuilder foreign({.skip_bits = 3}, 2);
  ChunkName key;
  foreign.Add(key);
  key.bytes[0] = 0x20;
  foreign.Add(key);
  REQUIRE_CODE(foreign.Finish(), kInvalidArgument);
  TrieBuilder own({.skip_bits = 2}, 2);
  own.Add(ChunkName{});
  own.Add(key);
  REQUIRE_OK(own.Finish());
}

TEST_CASE("a key takes 2.6 bits in total with weak ordering, 3.1 with exact, 0.35 sparse") {
  const auto keys = MakeKeys(KeyShape::kUniform, 1'000'000, 9);
  const TrieIndex weak = BuildTrie(keys, {.ordering = TrieOrdering::kWeak});
  CHECK(BitsPerKey(weak) <= 2.6);
  CHECK(8.0 * static_cast<double>(Encoded(weak).size()) / weak.entries() <= 2.6);
  CHECK(BitsPerKey(BuildTrie(keys, {.ordering = TrieOrdering::kExact})) <= 3.1);
  for (const TrieOrdering ordering : kOrderings) {
    const TrieIndex sparse = BuildTrie(keys, {.ordering = ordering, .block_entries = 128});
    CHECK(BitsPerKey(sparse) <= 0.35);
    CHECK(8.0 * static_cast<double>(Encoded(sparse).size()) / sparse.entries() <= 0.35);
  }
  RequireAllFound(weak, keys);
}

// A change here is a change of the file format.
TEST_CASE("an index is encoded to these bytes") {
  std::vector<ChunkName> keys(6);
  keys[1].bytes[0] = 0x40;
  keys[2].bytes[0] = 0x41;
  keys[3].bytes[0] = 0x80;
  keys[4].bytes[0] = 0xc0;
  keys[5].bytes[0] = 0xff;
  auto hex_of = [&](const TrieOptions& options) {
    std::string hex;
    for (const char byte : Encoded(BuildTrie(keys, options))) {
      hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    }
    return hex;
  };
  // In this order: header; a group's bit and rank; each bucket's rank and bit; tries.
  CHECK(hex_of({.ordering = TrieOrdering::kWeak}) ==
        "01010001000000000000000600000001000000"
        "0d00000000000000"
        "0000000000000000"
        "00000000"
        "00000000"
        "06000d00"
        "0e1e");
  CHECK(hex_of({.ordering = TrieOrdering::kExact}) ==
        "01000001000000000000000600000001000000"
        "1200000000000000"
        "0000000000000000"
        "00000000"
        "00000000"
        "06001200"
        "f6bf00");
  CHECK(hex_of({.ordering = TrieOrdering::kWeak, .block_entries = 2, .bucket_entries = 3}) ==
        "01010002000000030000000600000002000000"
        "0a00000000000000"
        "0000000000000000"
        "00000000"
        "00000000"
        "03000800"
        "06000a00"
        "8303");
}

TEST_CASE("several threads look up in an index at the same time") {
  const auto keys = MakeKeys(KeyShape::kUniform, 20'000, 10);
  const TrieIndex index = BuildTrie(keys, {});
  std::vector<std::thread> threads;
  std::vector<uint32_t> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < keys.size(); ++i) wrong[t] += index.Lookup(keys[i]) == i ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<uint32_t>(wrong.size()));
}

}  // namespace siltfs::testing
