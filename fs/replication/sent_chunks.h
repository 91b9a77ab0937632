// The chunks that a sender need not send, because the receiver has them: one bit for each chunk of
// the segments that were met.
//
// Not thread-safe. Memory: 1 bit for each chunk of these segments; for chunks whose place is not
// known, 12 to 17 bytes each.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fs/chunks/chunk_reader.h"
#include "fs/mark/node_set.h"
#include "store/base/chunk_name.h"

namespace siltfs {

class SentChunks {
 public:
  // Adds the chunk; false if it was added before. `place`: null if it is not known. A chunk that
  // moves between two calls counts as new, and is then sent twice.
  bool Add(const ChunkName& name, const ChunkReader::Place* place) {
    if (place == nullptr) return unplaced_.Insert(name);
    std::vector<bool>& chunks = segments_[place->segment];
    if (chunks.size() <= place->ordinal) chunks.resize(place->ordinal + 1);
    if (chunks[place->ordinal]) return false;
    chunks[place->ordinal] = true;
    return true;
  }

 private:
  std::unordered_map<SegmentId, std::vector<bool>> segments_;
  NodeSet unplaced_{NodeSet::kWholeNames};
};

// A set of names that may contain others, too (a Bloom filter). With 2^27 bits, and 10 million
// names, one of some 400 other names is contained.
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
