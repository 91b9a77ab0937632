// A key as the trie index uses it: a bucket, and the bits by which the bucket's trie branches.
//
// The key, without the leading bits that all keys share, is read as a binary fraction between 0 and
// 1. The product of its first 64 bits and the number of buckets has the bucket as its whole part.
// So any number of buckets gets equal shares of the keys. The path is the product's fractional part
// (64 bits), followed by the rest of the key. Keys compare like (bucket, path).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "store/base/chunk_name.h"

namespace siltfs {

struct TrieKey {
  static constexpr unsigned kKeyBits = 8 * ChunkName::kSize;

  uint32_t bucket;
  std::array<uint64_t, 3> path;  // the first bit is the highest; zeros behind the key's last bit

  // Returns the TrieKey of `key`. 1 <= buckets; skip_bits < 64.
  static TrieKey Of(const ChunkName& key, unsigned skip_bits, uint32_t buckets) {
    __extension__ using Wide = unsigned __int128;
    std::array<uint64_t, 3> words = {BigEndian(&key.bytes[0]), BigEndian(&key.bytes[8]),
                                     BigEndian(&key.bytes[12]) << 32};
    if (skip_bits > 0) {
      words[0] = words[0] << skip_bits | words[1] >> (64 - skip_bits);
      words[1] = words[1] << skip_bits | words[2] >> (64 - skip_bits);
      words[2] <<= skip_bits;
    }
    const Wide share = Wide{words[0]} * buckets;
    return {.bucket = static_cast<uint32_t>(share >> 64),
            .path = {static_cast<uint64_t>(share), words[1], words[2]}};
  }

  // The path's length.
  static constexpr unsigned PathBits(unsigned skip_bits) { return kKeyBits - skip_bits; }

  // depth < PathBits().
  bool Bit(unsigned depth) const { return (path[depth / 64] >> (63 - depth % 64) & 1) != 0; }

  // The first depth at which the paths differ; kKeyBits or more if they do not.
  unsigned FirstDifference(const TrieKey& other) const {
    if (path[0] != other.path[0]) return LeadingZeros(path[0] ^ other.path[0]);
    if (path[1] != other.path[1]) return 64 + LeadingZeros(path[1] ^ other.path[1]);
    return 128 + LeadingZeros(path[2] ^ other.path[2]);
  }

 private:
  static uint64_t BigEndian(const uint8_t* bytes) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    return word;
  }
  static unsigned LeadingZeros(uint64_t word) {
    return static_cast<unsigned>(std::countl_zero(word));
  }
};

}  // namespace siltfs
