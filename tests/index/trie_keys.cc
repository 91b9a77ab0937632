#include "trie_keys.h"

#include <algorithm>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

void SetNumber(ChunkName& key, uint32_t number) {
  for (unsigned i = 0; i < 4; ++i)
    key.bytes[ChunkName::kSize - 1 - i] = static_cast<uint8_t>(number >> (8 * i));
}

// Copies the first `bits` bits of `other` to `key`.
void SharePrefix(ChunkName& key, const ChunkName& other, unsigned bits) {
  std::copy_n(other.bytes.begin(), bits / 8, key.bytes.begin());
  if (bits % 8 == 0) return;
  const auto mask = static_cast<uint8_t>(0xff00U >> (bits % 8));
  uint8_t& byte = key.bytes[bits / 8];
  byte = static_cast<uint8_t>((byte & ~mask) | (other.bytes[bits / 8] & mask));
}

}  // namespace

std::string NameOf(KeyShape shape) {
  switch (shape) {
    case KeyShape::kUniform:
      return "uniform";
    case KeyShape::kClustered:
      return "clustered";
    case KeyShape::kSharedPrefix:
      return "shared prefix";
    case KeyShape::kNumbers:
      return "numbers";
    case KeyShape::kSpread:
      return "spread";
  }
  return "?";
}

ChunkName RandomKey(Random& random) {
  ChunkName key;
  random.Fill(key.bytes);
  return key;
}

std::vector<ChunkName> MakeKeys(KeyShape shape, size_t count, uint64_t seed, unsigned skip_bits) {
  Random random(seed);
  const ChunkName first = RandomKey(random);
  ChunkName cluster = first;
  std::vector<ChunkName> keys;
  for (size_t i = 0; i < count; ++i) {
    ChunkName key = RandomKey(random);
    switch (shape) {
      case KeyShape::kUniform:
        break;
      case KeyShape::kClustered:
        if (random.OneIn(300)) cluster = key;
        SharePrefix(key, cluster, 40);
        break;
      case KeyShape::kSharedPrefix:
        SharePrefix(key, first, 130);
        break;
      case KeyShape::kNumbers:
        key = first;
        SetNumber(key, static_cast<uint32_t>(i));
        break;
      case KeyShape::kSpread:
        SharePrefix(key, keys.empty() ? first : keys.back(),
                    static_cast<unsigned>(random.Below(8 * ChunkName::kSize)));
        break;
    }
    SharePrefix(key, first, skip_bits);
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

TrieIndex BuildTrie(const std::vector<ChunkName>& keys, const TrieOptions& options) {
  TrieBuilder builder(options, keys.size());
  for (const ChunkName& key : keys) builder.Add(key);
  Result<TrieIndex> index = builder.Finish();
  REQUIRE_OK(index);
  return std::move(index).value();
}

std::string Encoded(const TrieIndex& index) {
  Encoder out;
  index.Encode(out);
  return out.Take();
}

}  // namespace siltfs::testing
