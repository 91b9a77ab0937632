// A set of names that may contain others, too (a Bloom filter).
//
// Not thread-safe. Memory: 16 MiB from the first Add on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/base/chunk_name.h"

namespace siltfs {

// With 10 million names, the filter contains one of some 400 other names.
class NameFilter {
 public:
  void Add(const ChunkName& name) {
    if (bits_.empty()) bits_.resize(kBits);
    ForEachBit(name, [this](size_t bit) {
      bits_[bit] = true;
      return true;
    });
  }
  bool MayContain(const ChunkName& name) const {
    if (bits_.empty()) return false;
    return ForEachBit(name, [this](size_t bit) { return bits_[bit]; });
  }
  bool empty() const { return bits_.empty(); }

 private:
  static constexpr size_t kBits = size_t{1} << 27;
  static constexpr size_t kBitsOfName = 4;

  // Names are SHA-1 sums, so their parts serve as hashes.
  template <typename Visit>
  static bool ForEachBit(const ChunkName& name, const Visit& visit) {
    for (size_t i = 0; i < kBitsOfName; ++i) {
      uint32_t part = 0;
      for (size_t k = 0; k < sizeof part; ++k) part = part << 8 | name.bytes[i * sizeof part + k];
      if (!visit(part % kBits)) return false;
    }
    return true;
  }

  std::vector<bool> bits_;
};

}  // namespace siltfs
