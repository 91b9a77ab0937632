// Where a hash belongs in a partial-key cuckoo table (SILT, section 3.1): its two buckets, and the
// tag it has in each. Shared by the tables of LogStores and the filters of HashStores, which are
// the same table without its values.
//
// Functions only, safe to call from any thread.
#pragma once

#include <array>
#include <cstdint>

namespace siltfs {

inline constexpr unsigned kMaxBucketBits = 15;
inline constexpr unsigned kTagBits = 15;  // of the other bucket's number and further bits together
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

}  // namespace siltfs
