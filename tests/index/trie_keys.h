// Keys for the trie's tests: sorted, distinct, the same for the same seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "index/silt/trie_builder.h"
#include "index/silt/trie_index.h"
#include "store/base/chunk_name.h"
#include "store/base/random.h"

namespace siltfs::testing {

enum class KeyShape : uint8_t {
  kUniform,       // like hashes
  kClustered,     // in runs that share 40 bits
  kSharedPrefix,  // all keys share 130 bits
  kNumbers,       // 0, 1, 2, ... at the key's end, the densest possible
  kSpread,        // each key differs from the last at another depth
};
inline constexpr KeyShape kKeyShapes[] = {KeyShape::kUniform, KeyShape::kClustered,
                                          KeyShape::kSharedPrefix, KeyShape::kNumbers,
                                          KeyShape::kSpread};
std::string NameOf(KeyShape shape);

ChunkName RandomKey(Random& random);

// Makes `count` keys that share their first `skip_bits` bits; fewer if the shape has fewer keys.
std::vector<ChunkName> MakeKeys(KeyShape shape, size_t count, uint64_t seed,
                                unsigned skip_bits = 0);

TrieIndex BuildTrie(const std::vector<ChunkName>& keys, const TrieOptions& options);
std::string Encoded(const TrieIndex& index);

}  // namespace siltfs::testing
