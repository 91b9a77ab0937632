// The place of a hash in a partial-key cuckoo table (SILT, section 3.1): its two buckets, and its
// tag in each. Shared by cuckoo tables and cuckoo filters. A filter is the same table without its
// values.
//
// Functions only, safe to call from any thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace siltfs {

inline constexpr unsigned kMaxBucketBits = 15;
inline constexpr unsigned kTagBits = 15;  // bits of the other bucket's number and further hash bits
inline constexpr uint16_t kTagValid = 1U << kTagBits;
inline constexpr size_t kBucketWays = 4;

struct CuckooPlace {
  std::array<uint32_t, 2> buckets;
  std::array<uint16_t, 2> tags;
  friend bool operator==(const CuckooPlace&, const CuckooPlace&) = default;
};

inline CuckooPlace CuckooPlaceOf(uint64_t hash, unsigned bucket_bits) {
  const uint32_t bucket_mask = (1U << bucket_bits) - 1;
  const uint32_t first = static_cast<uint32_t>(hash) & bucket_mask;
  const uint32_t second = static_cast<uint32_t>(hash >> bucket_bits) & bucket_mask;
  const uint32_t further_mask = (1U << (kTagBits - bucket_bits)) - 1;
  const uint32_t further = static_cast<uint32_t>(hash >> (2 * bucket_bits)) & further_mask;
  const auto tag = static_cast<uint16_t>(kTagValid | further << bucket_bits);
  return {.buckets = {first, second},
          .tags = {static_cast<uint16_t>(tag | second), static_cast<uint16_t>(tag | first)}};
}

// A bucket has four places, called ways. The tags of all ways are compared as one word, in which
// way w has the bits 16 w to 16 w + 15. A set of ways is a word in which the highest bit of each of
// these ways is set.
static_assert(kBucketWays * 16 == 64 && kTagBits == 15);
inline constexpr uint64_t kEveryWay = 0x0001'0001'0001'0001;
inline constexpr uint64_t kHighestOfWays = kEveryWay * kTagValid;

inline uint64_t BucketTags(const uint16_t* bucket) {
  return uint64_t{bucket[0]} | uint64_t{bucket[1]} << 16 | uint64_t{bucket[2]} << 32 |
         uint64_t{bucket[3]} << 48;
}

inline uint64_t FreeWays(uint64_t tags) { return ~tags & kHighestOfWays; }

inline uint64_t WaysWithTag(uint64_t tags, uint16_t tag) {
  const uint64_t difference = tags ^ (kEveryWay * tag);
  // In each way, the sum carries from the lower 15 bits into the highest bit unless all 15 are
  // zero. No carry reaches the next way.
  return ~(((difference & ~kHighestOfWays) + ~kHighestOfWays) | difference) & kHighestOfWays;
}

// Returns the lowest way of a set, which must not be empty.
inline size_t FirstWay(uint64_t ways) { return static_cast<size_t>(std::countr_zero(ways)) / 16; }

}  // namespace siltfs
