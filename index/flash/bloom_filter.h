// Bloom filters (Bloom, 1970), flat and bit-sliced.
//
// A filter has blocks of the same size, and all bits of a hash are in one block; a filter of one
// block is the usual one. With blocks of a page's size, a lookup on flash reads one page.
//
// A bit-sliced filter (BloomStore, section III.A, "Bloom Filter Parallel Lookup") holds up to 128
// filters of one shape as columns: the bits of all filters at one position are one row. So a lookup
// checks all filters with a few bitwise ANDs of 128 bits.
//
// Thread-safety: values; const calls may run concurrently. Units: bits, bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/base/bytes.h"

namespace siltfs {

struct BloomShape {
  uint32_t blocks = 1;
  uint32_t block_bits = 64;
  unsigned probes = 1;  // bits of a hash

  // A filter of one block for so many entries; the number of probes gives the fewest false
  // positives.
  static BloomShape Flat(uint64_t entries, double bits_per_entry);
  static unsigned BestProbes(double bits_per_entry);

  uint64_t bits() const { return uint64_t{blocks} * block_bits; }
  uint64_t bytes() const { return (bits() + 63) / 64 * sizeof(uint64_t); }

  // Calls visit(bit) for the bits of a hash in its block.
  uint32_t BlockOf(uint64_t hash) const;
  template <typename Visit>
  void ForEachBit(uint64_t hash, const Visit& visit) const {
    const uint64_t mixed = Mix(hash);
    auto at = static_cast<uint32_t>(mixed);
    const uint32_t step = static_cast<uint32_t>(mixed >> 32) | 1;
    for (unsigned i = 0; i < probes; ++i, at += step) {
      if (!visit(static_cast<uint32_t>(uint64_t{at} * block_bits >> 32))) return;
    }
  }

  friend bool operator==(const BloomShape&, const BloomShape&) = default;

 private:
  static uint64_t Mix(uint64_t hash);
};

class BloomFilter {
 public:
  // An empty filter.
  explicit BloomFilter(const BloomShape& shape) : shape_(shape), words_(shape.bytes() / 8) {}
  // A filter of bytes() of another. Missing bytes count as ones, so that nothing is ruled out.
  BloomFilter(const BloomShape& shape, ByteView bytes);

  const BloomShape& shape() const { return shape_; }
  void Add(uint64_t hash);
  bool MayHave(uint64_t hash) const;
  bool Bit(uint64_t bit) const { return (words_[bit / 64] >> bit % 64 & 1) != 0; }
  Bytes bytes() const;
  uint64_t memory_bytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  BloomShape shape_;
  std::vector<uint64_t> words_;
};

// A set of columns of a bit-sliced filter.
struct ColumnSet {
  static constexpr size_t kMost = 128;
  std::array<uint64_t, 2> words = {};

  static ColumnSet FirstColumns(size_t count);  // 0 to count - 1
  bool empty() const { return (words[0] | words[1]) == 0; }
  // The greatest column; the set must not be empty.
  size_t Last() const {
    return words[1] != 0 ? 127 - static_cast<size_t>(std::countl_zero(words[1]))
                         : 63 - static_cast<size_t>(std::countl_zero(words[0]));
  }
  bool Has(size_t column) const { return (words[column / 64] >> column % 64 & 1) != 0; }
  void Remove(size_t column) { words[column / 64] &= ~(uint64_t{1} << column % 64); }
};

// One block of a bit-sliced filter, in bytes that belong to the caller: 16 bytes for each bit of
// the block.
inline constexpr size_t kSlicedRowBytes = ColumnSet::kMost / 8;

// Writes a block of a filter as a column. The column must be empty so far.
void SetSlicedColumn(MutableByteView block_rows, uint32_t block, size_t column,
                     const BloomFilter& filter);
// The columns whose filters may have the hash, which belongs to this block.
ColumnSet MatchSliced(const BloomShape& shape, ByteView block_rows, uint64_t hash);

}  // namespace siltfs
